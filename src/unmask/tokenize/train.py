"""Texts in, trained tokenizer out.

What arrives: a spec and a stream of texts, read once.
What leaves: a tokenizer whose file is the same, byte for byte, whenever the same texts come in the same order.
What never happens here: padding or truncation. A trained file leaves both to whoever builds rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from unmask.tokenize.roles import sentinel_names, special_entry
from unmask.tokenize.spec import Spec, append_entries
from unmask.tokenize.tokenizer import Tokenizer


def train(spec: Spec, texts: Iterable[str], progress: bool = False) -> Tokenizer:
    """Learn a vocabulary. `progress` shows the library's own bars where it has some."""
    content = json.loads(spec.untrained().to_str())
    content["model"] = spec.learn(texts, progress)
    sentinels = sentinel_names(spec.sentinels)
    first = append_entries(content["model"], sentinels)
    numbered = (*enumerate(spec.specials), *enumerate(sentinels, start=first))
    content["added_tokens"] = [special_entry(number, name, spec.roles) for number, name in numbered]
    return Tokenizer.parse(json.dumps(content, ensure_ascii=False))
