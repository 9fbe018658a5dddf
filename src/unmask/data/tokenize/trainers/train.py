"""Texts in, trained tokenizer out.

What arrives: a spec and a stream of texts, read once.
What leaves: a tokenizer whose file is the same, byte for byte, whenever the same texts come in the same order.
What never happens here: padding or truncation. A trained file leaves both to whoever builds rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from unmask.data.tokenize.special_tokens import added_token_entry, sentinel_names
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.protocol import TokenizerTrainer, add_entries


def train_tokenizer(trainer: TokenizerTrainer, texts: Iterable[str], progress: bool = False) -> Tokenizer:
    """Learn a vocabulary. `progress` shows the library's own bars where it has some."""
    content = json.loads(trainer.untrained_pipeline().to_str())
    content["model"] = trainer.train(texts, progress)
    sentinels = sentinel_names(trainer.num_sentinels)
    first = add_entries(content["model"], sentinels)
    numbered = (*enumerate(trainer.ordered_specials), *enumerate(sentinels, start=first))
    content["added_tokens"] = [added_token_entry(number, name, trainer.special_tokens) for number, name in numbered]
    return Tokenizer.parse(json.dumps(content, ensure_ascii=False))
