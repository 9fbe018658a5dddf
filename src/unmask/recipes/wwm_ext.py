"""BERT-wwm-ext: whole-word masking with more text and seven times the steps (Cui et al., 2019).

Changes from BERT-wwm: a million steps on rows of 128 tokens, then 400,000 on rows of 512 (BERT-wwm: 100,000 of each),
so the short rows take five sevenths of a budget. The text grew from 0.4 to 5.4 billion words; a recipe holds no text,
so that is for `--data`. It also started from Google's Chinese BERT: `unmask pretrain wwm-ext --init-from FOLDER`.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.config.sizes import BASE, Size
from unmask.recipes.wwm import wwm
from unmask.tasks.recipe import Recipe


def wwm_ext(size: Size = BASE) -> Recipe:
    """BERT-wwm-ext as published."""
    published = wwm(size)
    short, long = published.stages
    return replace(
        published,
        name="wwm-ext",
        summary="more text and more steps, most of them on short rows",
        parent="wwm",
        stages=(replace(short, fraction=1.0 / 1.4), replace(long, fraction=0.4 / 1.4)),
    )
