"""Property tests draw the same cases every time; set HYPOTHESIS_PROFILE=explore to look for new ones."""

import os
import signal

from hypothesis import settings

settings.register_profile("steady", derandomize=True, print_blob=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A suite that was started in the background ignores Ctrl-C, and so would every command that its tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
