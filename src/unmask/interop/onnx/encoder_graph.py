"""The ONNX graph of a BERT-like network, built node by node.

A hand-written graph is the same in every release of torch; `torch.onnx.export` needs the package onnxscript.

Shapes: B rows, L tokens of a row, D width, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from unmask.interop.hf.lookup import model_map, parts_of
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.onnx.graph_builder import GraphBuilder, Value
from unmask.nets.model import EncoderWithHeads

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OPSET, FORMAT, _BOOLEAN = 20, 9, 9
"""Those of onnx 1.15, the first with GELU as one operation; and its code for booleans."""
_ROWS = ("batch", "length")
_QUESTIONS = ("batch", "choices", "length")


class GraphOutput(NamedTuple):
    """A value with its shape; variable axes are names."""

    value: Value
    shape: Sequence[str | int]


def build_graph(onnx: ModuleType, model: EncoderWithHeads, architecture: Architecture) -> Any:  # noqa: ANN401
    """The ONNX model: padded rows in, the outputs of a class of `transformers` out."""
    graph = GraphBuilder(onnx, model.state_dict())
    if architecture.task is not HFTask.MULTIPLE_CHOICE:
        return _file(onnx, graph, _ROWS, _outputs(graph, model, architecture, _encoder(graph, model, *INPUTS)))
    shape = graph.node("Shape", [INPUTS[0]])
    lines = graph.node("Concat", [graph.constant([-1]), _last(graph, shape)], {"axis": 0})
    rows = [graph.node("Reshape", [name, lines]) for name in INPUTS]
    sizes = graph.node("Slice", [shape, graph.constant([0]), graph.constant([2])])
    scores = _outputs(graph, model, architecture, _encoder(graph, model, *rows))["logits"].value
    logits = GraphOutput(graph.node("Reshape", [scores, sizes]), _QUESTIONS[:2])
    return _file(onnx, graph, _QUESTIONS, {"logits": logits})


def _file(onnx: ModuleType, graph: GraphBuilder, axes: Sequence[str], outputs: Mapping[str, GraphOutput]) -> Any:  # noqa: ANN401
    helper, kinds = onnx.helper, onnx.TensorProto
    for name, output in outputs.items():
        graph.name_output(output.value, name)
    made = helper.make_graph(
        graph.nodes,
        "bert",
        [helper.make_tensor_value_info(name, kinds.INT64, list(axes)) for name in INPUTS],
        [helper.make_tensor_value_info(name, kinds.FLOAT, list(output.shape)) for name, output in outputs.items()],
        list(graph.initializers.values()),
    )
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opset, ir_version=FORMAT, producer_name="unmask")


def _last(graph: GraphBuilder, shape: Value) -> Value:
    """The last dimension of a shape, as a list of one."""
    return graph.node("Slice", [shape, graph.constant([-1]), graph.constant([2**31 - 1])])


def _encoder(graph: GraphBuilder, model: EncoderWithHeads, ids: Value, mask: Value, segment: Value) -> Value:
    """Embeddings and all blocks (B x L x D)."""
    config, embed = model.encoder.config, "network.embed"
    zero, first = graph.constant([0]), graph.constant([config.position_offset])
    end = graph.node("Add", [first, _last(graph, graph.node("Shape", [ids]))])
    position = graph.node("Slice", [graph.weight(f"{embed}.position.weight"), first, end, zero])
    x = graph.node("Gather", [graph.weight(f"{embed}.token.weight"), ids])
    x = graph.node("Add", [x, position])
    x = graph.node("Add", [x, graph.node("Gather", [graph.weight(f"{embed}.segment.weight"), segment])])
    x = graph.layer_norm(x, f"{embed}.norm", model.encoder.config.norm_eps)
    x = x if model.encoder.embed.project is None else graph.linear(x, f"{embed}.project")
    visible = graph.node("Cast", [mask], {"to": _BOOLEAN})
    visible = graph.node("Unsqueeze", [visible, graph.constant([1, 2])])  # B x 1 x 1 x L: the same for all queries
    for number in range(model.encoder.config.depth):
        x = _block(graph, model, f"network.layers.{number}", x, visible)
    return x


def _block(graph: GraphBuilder, model: EncoderWithHeads, layer: str, x: Value, visible: Value) -> Value:
    config, attention, ffn = model.encoder.config, f"{layer}.attention", f"{layer}.ffn"
    y = _attention(graph, model, f"{attention}.sublayer", x, visible)
    x = graph.layer_norm(graph.node("Add", [x, y]), f"{attention}.norm", config.norm_eps)
    y = graph.activation(graph.linear(x, f"{ffn}.sublayer.up"), config.activation)
    y = graph.linear(y, f"{ffn}.sublayer.down")
    return graph.layer_norm(graph.node("Add", [x, y]), f"{ffn}.norm", config.norm_eps)


def _attention(graph: GraphBuilder, model: EncoderWithHeads, layer: str, x: Value, visible: Value) -> Value:
    heads = model.encoder.config.heads
    width = model.encoder.config.width // heads
    split_heads = graph.constant([0, 0, heads, width])
    parts = graph.nodes_of("Split", [graph.linear(x, f"{layer}.qkv")], 3, {"axis": -1, "num_outputs": 3})
    query, key, value = (graph.node("Reshape", [part, split_heads]) for part in parts)
    query, value = (graph.node("Transpose", [part], {"perm": [0, 2, 1, 3]}) for part in (query, value))
    key = graph.node("Transpose", [key], {"perm": [0, 2, 3, 1]})  # B x H x K x L
    scores = graph.node("Mul", [graph.node("MatMul", [query, key]), graph.constant(width**-0.5)])
    scores = graph.node("Where", [visible, scores, graph.constant(float(np.finfo(np.float32).min))])
    mixed = graph.node("MatMul", [graph.node("Softmax", [scores], {"axis": -1}), value])
    joined = graph.node("Transpose", [mixed], {"perm": [0, 2, 1, 3]})
    joined = graph.node("Reshape", [joined, graph.constant([0, 0, heads * width])])
    return graph.linear(joined, f"{layer}.out")


def _outputs(
    graph: GraphBuilder, model: EncoderWithHeads, architecture: Architecture, x: Value
) -> dict[str, GraphOutput]:
    """The outputs of the heads, by their names in `transformers`."""
    states = {"last_hidden_state": GraphOutput(x, (*_ROWS, model.encoder.config.width))}
    match architecture.task:
        case HFTask.ENCODER if "row_head.pool" in parts_of(architecture).layers:
            return {
                **states,
                "pooler_output": GraphOutput(_pooled(graph, model, x), (_ROWS[0], model.encoder.config.width)),
            }
        case HFTask.ENCODER:
            return states
        case HFTask.DISCRIMINATOR:
            return {**states, "logits": GraphOutput(_discriminator(graph, model, x), _ROWS)}
        case HFTask.MASKED_LM:
            return {**states, "logits": _tokens(graph, model, x)}
        case HFTask.PRE_TRAINING:
            rows = model_map(architecture.model_type).row_logits
            return {**states, "prediction_logits": _tokens(graph, model, x), rows: _rows(graph, model, x)}
        case HFTask.CLASSIFIER | HFTask.MULTIPLE_CHOICE:
            return {"logits": _rows(graph, model, x)}
        case HFTask.TOKEN_CLASSIFICATION:
            return {
                "logits": GraphOutput(
                    graph.linear(x, "token_classifier"), (*_ROWS, graph.width("token_classifier.bias"))
                )
            }
        case HFTask.QUESTION_ANSWERING:
            ends = graph.nodes_of("Split", [graph.linear(x, "token_classifier")], 2, {"axis": -1, "num_outputs": 2})
            start, end = (graph.node("Squeeze", [one, graph.constant([-1])]) for one in ends)
            return {"start_logits": GraphOutput(start, _ROWS), "end_logits": GraphOutput(end, _ROWS)}


def _rows(graph: GraphBuilder, model: EncoderWithHeads, x: Value) -> GraphOutput:
    """The row head: pooler and classes."""
    scores = graph.linear(_pooled(graph, model, x), "row_head.classify")
    return GraphOutput(scores, (_ROWS[0], graph.width("row_head.classify.bias")))


def _pooled(graph: GraphBuilder, model: EncoderWithHeads, x: Value) -> Value:
    """The pooler (B x D)."""
    first = graph.node("Gather", [x, graph.constant(0)], {"axis": 1})
    return graph.activation(graph.linear(first, "row_head.pool"), model.encoder.config.pooler_activation)


def _discriminator(graph: GraphBuilder, model: EncoderWithHeads, x: Value) -> Value:
    """The discriminator head: one score per token (B x L)."""
    x = graph.activation(graph.linear(x, "discriminator_head.dense"), model.encoder.config.activation)
    return graph.node("Squeeze", [graph.linear(x, "discriminator_head.classify"), graph.constant([-1])])


def _tokens(graph: GraphBuilder, model: EncoderWithHeads, x: Value) -> GraphOutput:
    """The LM head: logits over the vocabulary, tied to the token embedding."""
    x = graph.activation(graph.linear(x, "lm_head.dense"), model.encoder.config.activation)
    x = graph.layer_norm(x, "lm_head.norm", model.encoder.config.norm_eps)
    return GraphOutput(graph.linear(x, "network.embed.token", bias="lm_head.bias"), (*_ROWS, model.vocab_size))
