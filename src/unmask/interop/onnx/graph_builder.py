"""A builder of ONNX graphs from layers with torch weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from unmask.config.network import Activation

_NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})
_ACTIVATION_NODES: Mapping[Activation, tuple[str, Mapping[str, Any]]] = {
    Activation.GELU: ("Gelu", _NO_ATTRIBUTES),
    Activation.GELU_TANH: ("Gelu", {"approximate": "tanh"}),
    Activation.RELU: ("Relu", _NO_ATTRIBUTES),
    Activation.TANH: ("Tanh", _NO_ATTRIBUTES),
}
Value: TypeAlias = str
"""The name of a value in the graph."""


class GraphBuilder:
    """Builds a graph node by node."""

    def __init__(self, onnx: ModuleType, weights: Mapping[str, Tensor]) -> None:
        self._onnx, self._weights = onnx, weights
        self._first_name_by_storage = {tensor.data_ptr(): name for name, tensor in reversed([*weights.items()])}
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}

    def node(self, kind: str, inputs: Sequence[Value], settings: Mapping[str, Any] = _NO_ATTRIBUTES) -> Value:
        """Add an operation with one output; returns its name."""
        (name,) = self.nodes_of(kind, inputs, 1, settings)
        return name

    def nodes_of(self, kind: str, inputs: Sequence[Value], count: int, settings: Mapping[str, Any]) -> list[Value]:
        """Add an operation with several outputs; returns their names."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), names, **settings))
        return names

    def name_output(self, value: Value, name: str) -> None:
        """Name a value as an output of the graph."""
        self.nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))

    def weight(self, name: str) -> Value:
        """A weight as an initializer; a shared one exists once, under its first name."""
        name = self._first_name_by_storage[self._weights[name].data_ptr()]
        if name not in self.initializers:
            array = self._weights[name].detach().float().cpu().contiguous().numpy()
            self.initializers[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def width(self, name: str) -> int:
        """The first dimension of a weight."""
        return len(self._weights[name])

    def constant(self, value: Sequence[int] | int | float) -> Value:
        """A float, an integer or a list of integers."""
        name = f"constant_{value}"
        if name not in self.initializers:
            array = np.array(value, np.float32 if isinstance(value, float) else np.int64)
            self.initializers[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def linear(self, x: Value, layer: str, bias: str = "") -> Value:
        """A linear layer."""
        transposed = self.node("Transpose", [self.weight(f"{layer}.weight")], {"perm": [1, 0]})
        return self.node("Add", [self.node("MatMul", [x, transposed]), self.weight(bias or f"{layer}.bias")])

    def layer_norm(self, x: Value, layer: str, epsilon: float) -> Value:
        """Layer normalization over the last axis."""
        parts = [x, self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")]
        return self.node("LayerNormalization", parts, {"axis": -1, "epsilon": epsilon})

    def activation(self, x: Value, activation: Activation) -> Value:
        """An activation function."""
        kind, settings = _ACTIVATION_NODES[activation]
        return self.node(kind, [x], settings)
