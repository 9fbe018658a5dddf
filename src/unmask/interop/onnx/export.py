"""Export a network as `model.onnx` and compare it with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from unmask.core.errors import InputError
from unmask.core.io.atomic import atomic_file
from unmask.interop.extra_format import FormatCheck, WrittenFolder
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.parity_check import comparison_rows
from unmask.interop.hf.reference_outputs import NamedOutputs, max_difference, model_outputs, pack_rows, to_padded_inputs
from unmask.interop.onnx.encoder_graph import build_graph
from unmask.interop.optional_dependency import require
from unmask.nets.encoder import num_parameters
from unmask.nets.model import EncoderWithHeads

FILE = "model.onnx"
_MAX_BYTES = 2**31 - 2**20
"""The maximum size of one file."""


@dataclass(frozen=True, slots=True)
class OnnxFormat:
    """The class of the folder as an ONNX graph: its logits, and the last hidden states of a pre-trained network."""

    def require_library(self) -> None:
        """Raise an error if onnx or onnxruntime is not installed."""
        _library("onnx")
        _library("onnxruntime")

    def add(self, written: WrittenFolder) -> FormatCheck:
        """Write the graph, run it on rows of several lengths, single and padded, and compare the outputs."""
        runtime, rows, kind = _library("onnxruntime"), comparison_rows(written), written.architecture
        _check_size(written.model)
        graph = build_graph(_library("onnx"), written.model, kind)
        with atomic_file(written.folder / FILE) as file:
            file.write(graph.SerializeToString())
        session = runtime.InferenceSession(str(written.folder / FILE), providers=["CPUExecutionProvider"])
        found = []
        for some in (rows[:1], rows[1:2], rows):
            tokens = pack_rows(some)
            ours = model_outputs(written.model, tokens, kind)
            found.append(max_difference(ours, _run(session, to_padded_inputs(tokens, kind)), tokens.sequences))
        worst = float(torch.tensor(found).max())  # NaN if there is one
        return FormatCheck("onnxruntime", runtime.__version__, "numbers", len(rows), worst).checked()

    def card_metadata(self) -> Mapping[str, str]:
        """None."""
        return {}

    def usage(self, architecture: Architecture) -> Sequence[str]:
        """A session on one text, or on the choices of one question."""
        choices = architecture.task is HFTask.MULTIPLE_CHOICE
        text = '["A question", "A question"], ["one choice", "another"], padding=True' if choices else '["Some text."]'
        value = "value[None]" if choices else "value"
        return (
            "from onnxruntime import InferenceSession",
            "from transformers import AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
            f'session = InferenceSession("FOLDER/{FILE}")',
            f'inputs = tokenizer({text}, return_tensors="np")',
            f"numbers = session.run(None, {{name: {value} for name, value in inputs.items()}})",
            "print(dict(zip([output.name for output in session.get_outputs()], numbers)))",
        )


def _check_size(model: EncoderWithHeads) -> None:
    if 4 * num_parameters(model) > _MAX_BYTES:
        raise InputError(
            f"{FILE} can hold 2 GiB, and this network has {num_parameters(model):,} parameters of 4 bytes. Export it "
            "without --onnx."
        )


def _run(session: Any, inputs: NamedOutputs) -> NamedOutputs:  # noqa: ANN401
    names = [output.name for output in session.get_outputs()]
    numbers = session.run(names, {name: grid.numpy() for name, grid in inputs.items()})
    return {name: torch.from_numpy(array) for name, array in zip(names, numbers, strict=True)}


def _library(name: str) -> ModuleType:
    return require(name, "onnx", f"{FILE} is written with onnx and run with onnxruntime before it is kept")
