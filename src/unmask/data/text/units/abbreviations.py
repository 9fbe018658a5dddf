"""English abbreviations, by whether a sentence can end with them.

What arrives: a word without its last point. What leaves: whether the point belongs to the word.
What never happens here: guessing from a corpus. The lists are short on purpose; capital letters do the rest.
"""

from __future__ import annotations

import re

_NEVER_LAST = """
mr mrs ms dr prof rev hon gen col lt sgt capt cmdr maj gov sen rep st mt messrs mme mlle fr
e.g i.e cf vs viz approx esp resp al ph
"""
_BEFORE_NUMBER = "no nos fig figs eq eqs sec vol vols ch chap art p pp para ed n c ca"
_SOMETIMES_LAST = """
etc inc ltd co corp jr sr bros dept univ est jan feb mar apr jun jul aug sep sept oct nov dec
mon tue tues wed thu thur thurs fri sat sun ave blvd rd a.m p.m b.c a.d ph.d m.d d.c
"""
_STARTERS = """
The A An This That These Those He She It They We You I His Her Its Their Our My There Here In On At By For From
With After Before When While Where Since As If But And Or So Yet However Although Though Then Thus Also To What
Who Why How Most Some Many Both Each Later Today Now Once
"""

NEVER_LAST = frozenset(_NEVER_LAST.split())
"""Something always follows: a name, an example."""
BEFORE_NUMBER = frozenset(_BEFORE_NUMBER.split())
"""An abbreviation only when a number follows; `no.` also ends sentences."""
SOMETIMES_LAST = frozenset(_SOMETIMES_LAST.split())
"""Ends a sentence if a word follows that begins one."""
SENTENCE_STARTERS = frozenset(_STARTERS.split())
"""Words that, written with a capital, nearly always begin a sentence."""

_initialism = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")


def is_initialism(word: str) -> bool:
    """Whether a word is an initial (J) or letters with points between them (U.S)."""
    return _initialism.fullmatch(word) is not None and (len(word) > 1 or word.isupper())
