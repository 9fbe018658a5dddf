"""What a user can get wrong, as one family of exceptions.

What arrives: a sentence that says who refuses, what was needed, what was found and what to do about it.
What leaves: an exception that the command line prints as that sentence, with exit code 2.
What never happens here: reporting our own bugs. Those stay `AssertionError` with a traceback.
"""


class UserError(Exception):
    """Something outside the program has to change before this can work."""


class InputError(UserError):
    """A file, a folder or a piece of text cannot be read or used."""


class CorpusError(UserError):
    """A prepared corpus is missing, damaged, or was made for something else."""


class RecipeError(UserError):
    """Parts were put together in a way that cannot work."""
