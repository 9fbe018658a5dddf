"""A network in the shape of BERT and its relatives as an ONNX graph, written node by node.

What arrives: our network, and the class whose outputs are wanted. What leaves: the graph, with our weights in it.
What never happens here: tracing. A graph written by hand is the same for every release of torch, takes no time, and is
as short as the network is simple. Whether it is right is shown by running it; see `export.py`.

Shapes: B rows, L tokens of a row, D width, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from unmask.interop.hf.architecture import Architecture, HFTask
from unmask.interop.hf.lookup import model_map, parts_of
from unmask.interop.onnx.graph_builder import GraphBuilder, Value
from unmask.nets.model import EncoderWithHeads

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OPSET, FORMAT, _BOOLEAN = 20, 9, 9
"""Of onnx 1.15, the first that has GELU as one operation; and its number for truth values."""
_ROWS = ("batch", "length")
_QUESTIONS = ("batch", "choices", "length")


class GraphOutput(NamedTuple):
    """A value with its shape, the axes that may vary by name."""

    value: Value
    shape: Sequence[str | int]


def build_graph(onnx: ModuleType, model: EncoderWithHeads, architecture: Architecture) -> Any:  # noqa: ANN401
    """The whole graph, as a file holds it: rows in, the outputs of a class of `transformers` out."""
    drawing = GraphBuilder(onnx, model.state_dict())
    if architecture.task is not HFTask.MULTIPLE_CHOICE:
        return _file(onnx, drawing, _ROWS, _outputs(drawing, model, architecture, _encoder(drawing, model, *INPUTS)))
    shape = drawing.node("Shape", [INPUTS[0]])
    lines = drawing.node("Concat", [drawing.constant([-1]), _last(drawing, shape)], {"axis": 0})
    rows = [drawing.node("Reshape", [name, lines]) for name in INPUTS]
    asked = drawing.node("Slice", [shape, drawing.constant([0]), drawing.constant([2])])
    scores = _outputs(drawing, model, architecture, _encoder(drawing, model, *rows))["logits"].value
    chosen = GraphOutput(drawing.node("Reshape", [scores, asked]), _QUESTIONS[:2])
    return _file(onnx, drawing, _QUESTIONS, {"logits": chosen})


def _file(onnx: ModuleType, drawing: GraphBuilder, axes: Sequence[str], said: Mapping[str, GraphOutput]) -> Any:  # noqa: ANN401
    helper, kinds = onnx.helper, onnx.TensorProto
    for name, output in said.items():
        drawing.name_output(output.value, name)
    given = [helper.make_tensor_value_info(name, kinds.INT64, list(axes)) for name in INPUTS]
    left = [helper.make_tensor_value_info(name, kinds.FLOAT, list(output.shape)) for name, output in said.items()]
    graph = helper.make_graph(drawing.nodes, "bert", given, left, list(drawing.initializers.values()))
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opset, ir_version=FORMAT, producer_name="unmask")


def _last(drawing: GraphBuilder, shape: Value) -> Value:
    """The last number of a shape, as a list of one."""
    return drawing.node("Slice", [shape, drawing.constant([-1]), drawing.constant([2**31 - 1])])


def _encoder(drawing: GraphBuilder, model: EncoderWithHeads, ids: Value, mask: Value, segment: Value) -> Value:
    """Embeddings and all blocks (B x L x D)."""
    zero, first, embed = (
        drawing.constant([0]),
        drawing.constant([model.encoder.config.position_offset]),
        "network.embed",
    )
    end = drawing.node("Add", [first, _last(drawing, drawing.node("Shape", [ids]))])
    place = drawing.node("Slice", [drawing.weight(f"{embed}.position.weight"), first, end, zero])
    x = drawing.node("Gather", [drawing.weight(f"{embed}.token.weight"), ids])
    x = drawing.node("Add", [x, place])
    x = drawing.node("Add", [x, drawing.node("Gather", [drawing.weight(f"{embed}.segment.weight"), segment])])
    x = drawing.layer_norm(x, f"{embed}.norm", model.encoder.config.norm_eps)
    x = x if model.network.embed.project is None else drawing.linear(x, f"{embed}.project")
    seen = drawing.node("Cast", [mask], {"to": _BOOLEAN})
    seen = drawing.node("Unsqueeze", [seen, drawing.constant([1, 2])])  # B x 1 x 1 x L: the same for all who look
    for number in range(model.encoder.config.depth):
        x = _block(drawing, model, f"network.layers.{number}", x, seen)
    return x


def _block(drawing: GraphBuilder, model: EncoderWithHeads, layer: str, x: Value, seen: Value) -> Value:
    shape, attend, feed = model.encoder.config, f"{layer}.attention", f"{layer}.ffn"
    y = _attention(drawing, model, f"{attend}.sublayer", x, seen)
    x = drawing.layer_norm(drawing.node("Add", [x, y]), f"{attend}.norm", shape.norm_eps)
    y = drawing.activation(drawing.linear(x, f"{feed}.sublayer.up"), shape.activation)
    y = drawing.linear(y, f"{feed}.sublayer.down")
    return drawing.layer_norm(drawing.node("Add", [x, y]), f"{feed}.norm", shape.norm_eps)


def _attention(drawing: GraphBuilder, model: EncoderWithHeads, layer: str, x: Value, seen: Value) -> Value:
    heads, width = model.encoder.config.heads, model.encoder.config.width // model.encoder.config.heads
    apart = drawing.constant([0, 0, heads, width])
    parts = drawing.nodes_of("Split", [drawing.linear(x, f"{layer}.qkv")], 3, {"axis": -1, "num_outputs": 3})
    query, key, value = (drawing.node("Reshape", [part, apart]) for part in parts)
    query, value = (drawing.node("Transpose", [part], {"perm": [0, 2, 1, 3]}) for part in (query, value))
    key = drawing.node("Transpose", [key], {"perm": [0, 2, 3, 1]})  # B x H x K x L
    scores = drawing.node("Mul", [drawing.node("MatMul", [query, key]), drawing.constant(width**-0.5)])
    scores = drawing.node("Where", [seen, scores, drawing.constant(float(np.finfo(np.float32).min))])
    mixed = drawing.node("MatMul", [drawing.node("Softmax", [scores], {"axis": -1}), value])
    joined = drawing.node("Transpose", [mixed], {"perm": [0, 2, 1, 3]})
    joined = drawing.node("Reshape", [joined, drawing.constant([0, 0, heads * width])])
    return drawing.linear(joined, f"{layer}.out")


def _outputs(
    drawing: GraphBuilder, model: EncoderWithHeads, architecture: Architecture, x: Value
) -> dict[str, GraphOutput]:
    """What stands on the trunk, by the names of `transformers`."""
    states = {"last_hidden_state": GraphOutput(x, (*_ROWS, model.encoder.config.width))}
    match architecture.task:
        case HFTask.ENCODER if "row_head.pool" in parts_of(architecture).layers:
            return {
                **states,
                "pooler_output": GraphOutput(_pooled(drawing, model, x), (_ROWS[0], model.encoder.config.width)),
            }
        case HFTask.ENCODER:
            return states
        case HFTask.DISCRIMINATOR:
            return {**states, "logits": GraphOutput(_replaced(drawing, model, x), _ROWS)}
        case HFTask.MASKED_LM:
            return {**states, "logits": _tokens(drawing, model, x)}
        case HFTask.PRE_TRAINING:
            rows = model_map(architecture.model_type).row_logits
            return {**states, "prediction_logits": _tokens(drawing, model, x), rows: _rows(drawing, model, x)}
        case HFTask.CLASSIFIER | HFTask.MULTIPLE_CHOICE:
            return {"logits": _rows(drawing, model, x)}
        case HFTask.TOKEN_CLASSIFICATION:
            return {
                "logits": GraphOutput(
                    drawing.linear(x, "token_classifier"), (*_ROWS, drawing.width("token_classifier.bias"))
                )
            }
        case HFTask.QUESTION_ANSWERING:
            ends = drawing.nodes_of("Split", [drawing.linear(x, "token_classifier")], 2, {"axis": -1, "num_outputs": 2})
            start, end = (drawing.node("Squeeze", [one, drawing.constant([-1])]) for one in ends)
            return {"start_logits": GraphOutput(start, _ROWS), "end_logits": GraphOutput(end, _ROWS)}


def _rows(drawing: GraphBuilder, model: EncoderWithHeads, x: Value) -> GraphOutput:
    """Classes of rows, through the pooler."""
    scores = drawing.linear(_pooled(drawing, model, x), "row_head.classify")
    return GraphOutput(scores, (_ROWS[0], drawing.width("row_head.classify.bias")))


def _pooled(drawing: GraphBuilder, model: EncoderWithHeads, x: Value) -> Value:
    """The pooler (B x D)."""
    first = drawing.node("Gather", [x, drawing.constant(0)], {"axis": 1})
    return drawing.activation(drawing.linear(first, "row_head.pool"), model.encoder.config.pooler_activation)


def _replaced(drawing: GraphBuilder, model: EncoderWithHeads, x: Value) -> Value:
    """One number for each token (B x L)."""
    x = drawing.activation(drawing.linear(x, "discriminator_head.dense"), model.encoder.config.activation)
    return drawing.node("Squeeze", [drawing.linear(x, "discriminator_head.classify"), drawing.constant([-1])])


def _tokens(drawing: GraphBuilder, model: EncoderWithHeads, x: Value) -> GraphOutput:
    """Logits over the vocabulary, through the token embedding itself."""
    x = drawing.activation(drawing.linear(x, "lm_head.dense"), model.encoder.config.activation)
    x = drawing.layer_norm(x, "lm_head.norm", model.encoder.config.norm_eps)
    return GraphOutput(drawing.linear(x, "network.embed.token", bias="lm_head.bias"), (*_ROWS, model.vocab_size))
