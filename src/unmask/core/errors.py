"""The exceptions for errors of the user.

A message is a sentence with four parts: who refuses, what was needed, what was found, what to do. The command line
prints it and exits with code 2. Bugs of this package raise `AssertionError` instead.
"""


class UserError(Exception):
    """An error that a change outside the program can resolve."""


class InputError(UserError):
    """An unreadable or unusable file, folder or text."""


class CorpusError(UserError):
    """A prepared corpus that is missing, damaged or made for something else."""


class RecipeError(UserError):
    """Settings that do not fit together."""
