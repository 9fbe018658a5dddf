"""What our kernels take on a GPU, compiled without one: registers, spills, shared memory, sizes of loads.

    python -m bench.kernels.kernel_sizes
    python -m bench.kernels.kernel_sizes --width 1024 --inner 4096 --vocabulary 50265
    python -m bench.kernels.kernel_sizes --chip 86 --shared 101376                              (a card with little to share)

What arrives: the sizes of a network, and of a card (a Hopper, if nothing is said). What leaves: one line for each
kernel in bfloat16, with the blocks and tiles that are chosen for it. What never happens here: a run. A kernel that
spills, that loads less than 16 bytes at once, or that shares more than there is, is a mistake that shows here already;
how fast it is does not.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from unmask.nets.attention.backends import KERNEL_HEAD_DIMS
from unmask.nets.batch.packed_sequences import MaskKind
from unmask.nets.kernels.launch import LaunchGrid, grid_by_columns, grid_by_rows, grid_by_warps
from unmask.nets.kernels.triton import attention_backward as back
from unmask.nets.kernels.triton import attention_long as long
from unmask.nets.kernels.triton import attention_short as short
from unmask.nets.kernels.triton import embedding, gelu, reduce, vocab_loss
from unmask.nets.kernels.triton import norm as norm_module
from unmask.nets.kernels.triton.attention_tiles import AttentionTiles, tiles_for, tiles_for_query_subset

HOPPER, SHARED = 90, 233_472
THREADS = 2048
"""That a multiprocessor can hold; also 65,536 registers."""
REGISTERS = 65_536
_STATES = {"x", "y", "out", "grad", "again", "dx", "dy", "logits", "qkv", "dqkv", "q", "kv", "dq", "dkv"}
_WHOLE = {"ids", "position", "segment", "answers", "drawn"}
_SMALL = {"offsets", "asks", "draws", "seed"}
_NUMBERS = {"rows", "parts", "width", "total", "longest", "reach"}
_SHARES = {"rate", "epsilon", "scale"}


@dataclass(frozen=True)
class Case:
    """A kernel, and how it is called."""

    kernel: Any
    constants: Mapping[str, int | bool | str]
    warps: int
    stages: int = 3
    block: str = ""
    registers: int | None = None


@dataclass(frozen=True)
class Taken:
    """What a kernel takes."""

    registers: int
    spilled: int
    shared: int
    loads: str
    """How many loads of how many bytes a thread makes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("width", 768), ("inner", 3072), ("vocabulary", 30522)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--chip", type=int, default=HOPPER, help="90 is a Hopper, 86 and 89 are cards for desks")
    parser.add_argument("--shared", type=int, default=SHARED, help="bytes that a program may share there")
    wish = parser.parse_args()
    print(f"{'kernel':18} {'block':>23} {'warps':>5} {'regs':>5} {'spilled':>7} {'shared':>7} {'at once':>7}  loads")
    too_much = []
    for case in (*cases(wish.width, wish.inner, wish.vocabulary), *attention(wish.shared)):
        taken = compiled(case, wish.chip)
        at_once = min(
            THREADS // (32 * case.warps),
            REGISTERS // (max(taken.registers, 1) * 32 * case.warps),
            wish.shared // max(taken.shared, 1),
        )
        line = (
            f"{case.kernel.__name__:18} {case.block:>23} {case.warps:>5} {taken.registers:>5} {taken.spilled:>7} "
            f"{taken.shared:>7} {at_once:>7}  {taken.loads}"
        )
        print(line, flush=True)
        if taken.shared > wish.shared:
            too_much.append(line)
    if too_much:
        raise SystemExit("these share more than there is:\n" + "\n".join(too_much))


def cases(width: int, inner: int, vocabulary: int) -> Iterator[Case]:
    """All kernels, with dropout, for a network of this size."""
    rows, columns = _tiles(grid_by_rows, width), _tiles(grid_by_columns, inner)
    norm = {"WIDTH": width, "DROPS": True}
    lines = _tiles(grid_by_warps, width)
    yield _case(norm_module.add_norm_forward, lines, {**norm, "STAGES": lines.stages})
    yield _case(norm_module.add_norm_backward, lines, {**norm, "STAGES": lines.stages, "TWO": True})
    yield _case(embedding.embed_forward, rows, {**norm, "SEGMENTS": 2})
    yield _case(embedding.embed_backward, rows, {**norm, "SEGMENTS": 2, "TWO": True, "ADDS": True})
    for tanh in (False, True):
        yield _case(gelu.bias_gelu_forward, columns, {"WIDTH": inner, "TANH": tanh})
        yield _case(gelu.bias_gelu_backward, columns, {"WIDTH": inner, "TANH": tanh})
    wide = -(-vocabulary // 64) * 64
    sizes = {"VOCABULARY": vocabulary, "STRIDE": wide}
    yield Case(vocab_loss.cross_entropy_forward, {**sizes, "BLOCK": 4096}, 8, block="1 x 4096")
    yield _case(vocab_loss.cross_entropy_backward, _tiles(grid_by_columns, wide), sizes)
    yield Case(reduce.reduce_partials, {"ROWS": reduce.PARTS, "BLOCK": reduce.COLUMNS}, 4, block="64 x 32")
    yield Case(vocab_loss.sample_tokens_kernel, {**sizes, "BLOCK": 4096}, 8, block="1 x 4096")


def attention(shared: int) -> Iterator[Case]:
    """Those of attention, for heads of every width and sequences of both kinds, with dropout and without."""
    for width, drops in product(sorted(KERNEL_HEAD_DIMS), (False, True)):
        for longest in (64, 128, 512):
            yield from _attention(tiles_for(width, longest, torch.bfloat16, shared), width, drops, some=False)
        yield from _attention(tiles_for_query_subset(width, torch.bfloat16, shared), width, drops, some=True)


def _attention(tiles: AttentionTiles, width: int, drops: bool, some: bool, heads: int = 12) -> Iterator[Case]:
    """The kernels that work together."""
    works = [(long.forward if tiles.queries else short.forward, tiles.forward)]
    works += [(back.backward_dkv, tiles.back)] if tiles.queries else [(short.backward, tiles.back)]
    works += [(back.backward_dq, tiles.queries)] if tiles.queries else []
    for kernel, tile in works:
        told = {
            "HEADS": heads,
            "WIDTH": width,
            "QUERY": heads * width * (1 if some else 3),
            "KEY": heads * width * (2 if some else 3),
            "SOME": some,
            "SIGHT": MaskKind.FULL.value,
            "DROPS": drops,
            "OWES": True,
            "TURNS": max(few for few in range(1, tile.turns + 1) if heads % few == 0),
        }
        told = {name: value for name, value in told.items() if name in kernel.arg_names}
        sizes = {**told, "M": tile.queries, "N": tile.keys}
        block = f"{tile.queries} x {tile.keys} x {width}{' some' if some else ''}{' drop' if drops else ''}"
        yield Case(kernel, sizes, tile.warps, tile.stages, block, tile.registers)


def compiled(case: Case, chip: int = HOPPER) -> Taken:
    """Compile a kernel for pointers that 16 divides, as they are in a step."""
    names = case.kernel.arg_names
    signature = {name: "constexpr" if name in case.constants else _type(name) for name in names}
    even = [place for place, name in enumerate(names) if signature[name][0] == "*"]
    source = ASTSource(case.kernel, signature, dict(case.constants), {(at,): [["tt.divisibility", 16]] for at in even})
    options = {"num_warps": case.warps, "num_stages": case.stages, "maxnreg": case.registers}
    made = triton.compile(source, target=GPUTarget("cuda", chip, 32), options=options)
    said, ptx = _assembled(made.asm["ptx"], chip), made.asm["ptx"]
    loads = re.findall(r"ld\.global[\w:.]*?(?:\.v(\d))?\.b(\d+)", ptx)
    sizes = Counter(int(many or 1) * int(bits) // 8 for many, bits in loads)
    return Taken(
        registers=int(_found(r"Used (\d+) registers", said)),
        spilled=int(_found(r"(\d+) bytes spill stores", said)),
        shared=made.metadata.shared,
        loads=" ".join(f"{count} x {size}" for size, count in sorted(sizes.items(), reverse=True)),
    )


def _case(kernel: Any, tiles: LaunchGrid, constants: Mapping[str, int | bool]) -> Case:  # noqa: ANN401
    sizes = {**constants, "ROWS": tiles.rows, "BLOCK": tiles.block}
    return Case(kernel, sizes, tiles.warps, block=f"{tiles.rows} x {tiles.block}")


def _tiles(choose: Any, width: int) -> LaunchGrid:  # noqa: ANN401
    """The blocks do not depend on the device, only the number of programs does."""
    tiles: LaunchGrid = choose(65_536, width, torch.device("cpu"))
    return tiles


def _type(name: str) -> str:
    """The type of an argument, by its name."""
    if name in _NUMBERS | _SHARES:
        return "i32" if name in _NUMBERS else "fp32"
    what = name.removesuffix("_ptr")
    kinds = ((_STATES, "*bf16"), (_WHOLE, "*i64"), (_SMALL, "*i32"), ({"right"}, "*i8"))
    return next((kind for names, kind in kinds if what in names), "*fp32")


def _assembled(ptx: str, chip: int) -> str:
    """What the assembler says of a kernel."""
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    with TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        command = [
            str(assembler),
            "-v",
            f"--gpu-name=sm_{chip}{'a' if chip >= HOPPER else ''}",
            str(source),
            "-o",
            str(Path(folder) / "kernel.cubin"),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match[1]


if __name__ == "__main__":
    main()
