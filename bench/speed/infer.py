"""Vectors for texts, side by side: the path of `unmask embed`, a loop over `AutoModel`, and `sentence-transformers`.

    python -m bench.speed.infer --text FILE --size base --device cuda --half --out infer.json
    python -m bench.speed.infer --device cpu --size tiny --texts 60 --rounds 1     (a check)

What arrives: a file with one text a line, or nothing: then pieces of the embedded newspaper, whose lengths follow a
log-normal law as those of sentences and short comments do. What leaves: tokens and texts a second of each side, and the
ratios of the same round; the median over all rounds.
What never happens here: a difference in the work. All sides have the same network with the same random weights, read
from one exported folder, are asked for equally many texts at once, tokenize them on the clock, and give the mean of the
last states over all tokens; how far their vectors lie apart is printed. The plain loop pads each batch to its longest
text, in the order of the texts; `sentence-transformers` sorts all texts by their length first; ours computes no
padding, and on a CPU fewer texts at once, as many as stay in its cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from bench.speed.common.timing import settle
from unmask.config.model_type import ModelType
from unmask.config.pooling import Pooling
from unmask.core.records import Floats
from unmask.data.text.sample_corpora import peoples_daily
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.inference.embed import LayerPooling, embed
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import export_hf
from unmask.interop.sentence_transformers import SentenceTransformersFormat
from unmask.members import member
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

POSITIONS = 512
MIDDLE, SPREAD = 40.0, 0.8
"""The middle length of a text in characters, and how widely the logarithms of lengths are spread."""
Side = Callable[[Sequence[str]], Floats]


@dataclass(frozen=True)
class Found:
    """What was measured of one side: medians over the rounds."""

    side: str
    tokens_per_second: float
    texts_per_second: float
    seconds: float
    ours_is: float
    """How many times as fast ours was in the same round."""
    apart: float
    """The largest difference of any number from ours."""

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.side:22} {self.tokens_per_second:>12,.0f} {self.texts_per_second:>10,.0f} {self.seconds:>9.3f} "
            f"{self.ours_is:>9.2f}x {self.apart:>9.1e}"
        )


def main() -> None:
    wish = _wishes()
    warnings.filterwarnings("ignore")
    device = torch.device(wish.device)
    texts = list(_texts(wish))
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    tokenizer = train_tokenizer(WordPiece(size=wish.vocabulary, min_count=1), texts)
    lengths = [min(len(ids) + 2, POSITIONS) for ids in Encoder(tokenizer).encode_ids(texts)]
    print(f"{name}, torch {torch.__version__}, {'bfloat16' if wish.half else 'float32'}, {wish.size}")
    print(
        f"{len(texts):,} texts, {sum(lengths):,} tokens; median {statistics.median(lengths):g}, longest {max(lengths)}"
    )
    with TemporaryDirectory() as folder:
        sides = _sides(wish, tokenizer, Path(folder) / "network", device)
        found = measure(sides, texts, sum(lengths), wish, device)
    print(f"{'side':22} {'tokens/s':>12} {'texts/s':>10} {'seconds':>9} {'ours is':>10} {'apart':>9}")
    print("\n".join(one.line() for one in found))
    if wish.out:
        about = {"device": name, "torch": torch.__version__, "half": wish.half, "size": wish.size, "batch": wish.batch}
        wish.out.write_text(json.dumps(about | {"found": [asdict(one) for one in found]}, indent=1) + "\n", "utf-8")


def measure(
    sides: dict[str, Side], texts: list[str], tokens: int, wish: argparse.Namespace, device: torch.device
) -> list[Found]:
    """All sides in turns, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    vectors: dict[str, Floats] = {}
    for number in range(1 + wish.rounds):
        for name, side in sides.items():
            settle(device)
            began = time.perf_counter()
            with torch.inference_mode(), _precision(wish, device):
                vectors[name] = side(texts)
            settle(device)
            if number:
                times[name].append(time.perf_counter() - began)
    held = []
    for name in sides:
        seconds = statistics.median(times[name])
        ratio = statistics.median(theirs / ours for theirs, ours in zip(times[name], times["unmask"], strict=True))
        apart = float(np.abs(vectors[name] - vectors["unmask"]).max())
        held.append(Found(name, tokens / seconds, len(texts) / seconds, seconds, ratio, apart))
    return held


def _precision(wish: argparse.Namespace, device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16) if wish.half else nullcontext()


def _sides(wish: argparse.Namespace, tokenizer: Tokenizer, folder: Path, device: torch.device) -> dict[str, Side]:
    """The same network three times."""
    model = EncoderWithHeads(member("bert", wish.size).network, tokenizer.vocab.size, POSITIONS)
    init_weights(model, 0.02, torch.Generator().manual_seed(1))
    export_hf(
        model,
        tokenizer,
        folder,
        Architecture(ModelType.BERT, HFTask.ENCODER),
        extras=(SentenceTransformersFormat(Pooling.MEAN),),
    )
    return {
        "unmask": _ours(model.to(device), tokenizer, wish.batch),
        "transformers": _plain(folder, wish.batch, device),
        "sentence-transformers": _sorted(folder, wish.batch, device),
    }


def _ours(model: EncoderWithHeads, tokenizer: Tokenizer, batch: int) -> Side:
    pooling = LayerPooling(model.config.depth, Pooling.MEAN)
    return lambda texts: np.concatenate(list(embed(model, tokenizer, texts, pooling, batch)))


def _plain(folder: Path, batch: int, device: torch.device) -> Side:
    """The loop that model cards show."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).to(device).eval()

    def vectors(texts: Sequence[str]) -> Floats:
        pooled = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            inputs = tokenizer(part, padding=True, truncation=True, max_length=POSITIONS, return_tensors="pt").to(
                device
            )
            states, mask = model(**inputs).last_hidden_state.float(), inputs["attention_mask"][..., None]
            pooled.append(((states * mask).sum(1) / mask.sum(1)).cpu().numpy())
        return np.concatenate(pooled)

    return vectors


def _sorted(folder: Path, batch: int, device: torch.device) -> Side:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device=str(device))

    def vectors(texts: Sequence[str]) -> Floats:
        found = model.encode(list(texts), batch_size=batch, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    return vectors


def _texts(wish: argparse.Namespace) -> Iterator[str]:
    """Lines of a file, or pieces of the newspaper whose lengths are drawn."""
    if wish.text:
        lines = (line.strip() for line in wish.text.read_text(encoding="utf-8").splitlines())
        yield from [line for line in lines if line][: wish.texts]
        return
    flow = "".join(document.text.replace("\n", "") for document in peoples_daily())
    draw = torch.Generator().manual_seed(1)
    lengths = (torch.randn(wish.texts, generator=draw) * SPREAD).exp() * MIDDLE
    start = 0
    for length in lengths.clamp(4, POSITIONS - 2).int().tolist():
        yield flow[start : start + length]
        start = (start + length) % (len(flow) - POSITIONS)


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--text", type=Path, help="a file with one text a line; without it pieces of a newspaper")
    parser.add_argument("--texts", type=int, default=2000, help="how many texts at most")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--half", action="store_true", help="in bfloat16 (autocast), all sides")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=64, help="texts that are computed at once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
