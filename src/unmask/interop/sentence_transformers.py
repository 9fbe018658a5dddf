"""Files for `sentence_transformers.SentenceTransformer`, compared with the vectors of `unmask embed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from unmask.config.pooling import Pooling
from unmask.core.io.atomic import write_json
from unmask.core.records import Floats
from unmask.inference.embed import LayerPooling, embed, require_untrained
from unmask.interop.extra_format import FormatCheck, WrittenFolder
from unmask.interop.hf.model_map import Architecture
from unmask.interop.optional_dependency import quiet_transformers, require, require_transformers

_POOLING = "1_Pooling"
_MODES = {
    Pooling.FIRST: "pooling_mode_cls_token",
    Pooling.MEAN: "pooling_mode_mean_tokens",
    Pooling.MAX: "pooling_mode_max_tokens",
}


@dataclass(frozen=True, slots=True)
class SentenceTransformersFormat:
    """One vector per text, pooled from the last layer."""

    pooling: Pooling = Pooling.MEAN
    normalize: bool = False
    """Whether vectors are normalized to length 1."""

    def __post_init__(self) -> None:
        require_untrained(self.pooling)

    def require_library(self) -> None:
        """Raise an error if the library is not installed."""
        _library()

    def add(self, written: WrittenFolder) -> FormatCheck:
        """Write the files in the format that every release of the library reads."""
        library, folder, width = _library(), written.folder, written.model.config.width
        write_json(folder / "modules.json", self._modules())
        (folder / _POOLING).mkdir()
        modes = {name: pool is self.pooling for pool, name in _MODES.items()}
        write_json(folder / _POOLING / "config.json", {"word_embedding_dimension": width, **modes})
        positions = written.model.max_positions
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": positions, "do_lower_case": False})
        write_json(folder / "config_sentence_transformers.json", _versions(library))
        return self._compare(library, written)

    def _modules(self) -> list[dict[str, object]]:
        paths = {"Transformer": "", "Pooling": _POOLING, **({"Normalize": "2_Normalize"} if self.normalize else {})}
        return [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}
            for place, (name, path) in enumerate(paths.items())
        ]

    def _compare(self, library: ModuleType, written: WrittenFolder) -> FormatCheck:
        model, long = written.model, " ".join(written.lines)
        tokens = len(written.tokenizer.pipeline.encode(long, add_special_tokens=False).ids)
        lines = [
            *written.lines,
            " ".join([long] * (1 + model.max_positions // max(1, tokens))),
        ]  # the last is truncated
        pooling = LayerPooling(model.config.depth, self.pooling, self.normalize)
        ours_ND = np.concatenate(list(embed(model, written.tokenizer, lines, pooling)))
        theirs_ND = _vectors(library, written.folder, lines)
        difference = float(np.abs(ours_ND - theirs_ND).max())
        return FormatCheck("sentence-transformers", library.__version__, "vectors", len(lines), difference).checked()

    def card_metadata(self) -> Mapping[str, str]:
        """The library and the pipeline of sentence vectors."""
        return {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}

    def usage(self, architecture: Architecture) -> Sequence[str]:
        """Vectors and their similarity."""
        return (
            "from sentence_transformers import SentenceTransformer",
            "",
            'model = SentenceTransformer("FOLDER")',
            'vectors = model.encode(["The sun is out.", "It is sunny.", "He drove home."])',
            "print(model.similarity(vectors, vectors))",
        )


def _library() -> ModuleType:
    reason = "A folder for sentence-transformers is compared with that library before it is kept"
    return require("sentence_transformers", "sentence", reason)


def _versions(library: ModuleType) -> dict[str, object]:
    versions = {
        "sentence_transformers": library.__version__,
        "transformers": require_transformers().__version__,
        "pytorch": torch.__version__,
    }
    return {"__version__": versions, "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}


def _vectors(library: ModuleType, folder: Path, lines: Sequence[str]) -> Floats:
    """The vectors of sentence-transformers."""
    with quiet_transformers(require_transformers()):
        network = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        vectors: Floats = network.encode(list(lines), convert_to_numpy=True, show_progress_bar=False)
    return vectors
