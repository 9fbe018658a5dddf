"""Property tests draw the same cases every time; set HYPOTHESIS_PROFILE=explore to look for new ones."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, print_blob=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
