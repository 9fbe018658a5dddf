"""ERNIE 1.0 in the names of `transformers` (Sun et al., 2019): BERT's under another prefix.

What arrives: nothing. What leaves: the grammar.
What never happens here: the task embedding of ERNIE 2.0. Settings that ask for it are refused.
"""

from __future__ import annotations

from unmask.dialect import Dialect
from unmask.export.bert import FIXED, TOKENS, classes
from unmask.export.grammar import Grammar
from unmask.export.stack import Single

ERNIE = Grammar(
    dialect=Dialect.ERNIE,
    classes=classes(Dialect.ERNIE),
    tokens=TOKENS,
    stack=Single(),
    fixed={**FIXED, "use_task_id": False},
)
