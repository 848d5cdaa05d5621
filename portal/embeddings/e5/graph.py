"""The network for onnxruntime: BERT without its first step, the lookup of word vectors.

That table is four fifths of the weights; a text needs a few hundred of its rows, which are looked
up outside. Devlin et al., BERT, 2019; operators of com.microsoft: docs/ContribOperators.md of
onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from portal.embeddings.e5 import onnx_format
from portal.embeddings.e5.weights import Matrix, Tensors

INPUT, OUTPUT = "embedded", "mean"
# Written by eval/fitting/outliers.py.
OUTLIERS = Path(__file__).parent / "outliers.npz"
# The operator that these put in place of two takes eight times as long.
DISABLED_OPTIMISERS = ["SkipLayerNormFusion", "BiasSkipLayerNormFusion"]
_CONTRIB = "com.microsoft"
_CONTRIB_OPERATORS = {"DynamicQuantizeMatMul", "Gelu", "MultiHeadAttention", "QAttention"}
_OPSET = 20
# The greatest rounded weight by precision. On processors without VNNI sums of two eight-bit
# products do not fit into sixteen bits and are clipped; with weights of seven bits they fit.
INT8, INT7, FLOAT32 = "int8", "int7", "float32"
_MAX_WEIGHTS = {INT8: 127, INT7: 63}
PRECISIONS = (INT8, INT7, FLOAT32)


@dataclass(frozen=True, slots=True)
class Outliers:
    """Channels that are far greater than the rest in any text.

    `attention` and `inner`, (layers, width), divide the inputs of a layer's two halves before they
    are rounded; `activated`, (layers, 16), are the places of the greatest activations.
    """

    attention: Matrix
    inner: Matrix
    activated: NDArray[np.int64]

    @classmethod
    def load(cls) -> Outliers:
        with np.load(OUTLIERS, allow_pickle=False) as stored:
            return cls(
                stored["attention"].astype(np.float32),
                stored["inner"].astype(np.float32),
                stored["activated"].astype(np.int64),
            )


def build(
    weights: Tensors, precision: str, outputs: Iterable[str] = (), *, first_layer: int = 0
) -> bytes:
    """Return the ONNX model.

    Its input is embedded tokens, (1, tokens, width), or the output of the layer before
    `first_layer`; its outputs are the last layer, of the same shape, and the mean of that, (1,
    width). `outputs` are names of further ones. Only requested outputs are computed.
    """
    shape = weights.shape
    graph = _Graph(weights)
    if precision != FLOAT32:
        graph = _RoundedGraph(weights, Outliers.load(), _MAX_WEIGHTS[precision])
    state = INPUT if first_layer else graph.normalise("emb.ln", INPUT)
    for layer in range(first_layer, shape.layers):
        for name, half in (("aln", graph.attention), ("oln", graph.inner)):
            state = graph.normalise(
                f"l{layer}.{name}", graph.node("Add", state, half(layer, state))
            )
    graph.node("ReduceMean", state, graph.constant(np.array([1])), output=OUTPUT, keepdims=0)
    return onnx_format.model(
        "multilingual-e5-small",
        graph.nodes,
        graph.constants,
        inputs={INPUT: (1, "tokens", shape.width)},
        outputs={
            OUTPUT: (1, shape.width),
            **dict.fromkeys({state, *outputs}, (1, "tokens", "channels")),
        },
        opsets={"": _OPSET, _CONTRIB: 1},
    )


def layer_output(layer: int) -> str:
    """Return the name of the output that holds each token's vector after a layer."""
    return f"l{layer}.oln.out"


class _Graph:
    """Nodes and constants of the network in float32, as they are added."""

    def __init__(self, weights: Tensors) -> None:
        self.weights = weights
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []

    def constant(self, values: NDArray[np.generic]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx_format.tensor(name, values))
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **options: float) -> str:
        output = output or f"n{len(self.nodes)}"
        self._add(operator, inputs, [output], **options)
        return output

    def normalise(self, name: str, taken: str) -> str:
        constants = (self.constant(self.weights.vector(f"{name}.{part}")) for part in "wb")
        return self.node(
            "LayerNormalization",
            taken,
            *constants,
            output=f"{name}.out",
            epsilon=self.weights.shape.epsilon,
            axis=-1,
        )

    def attention(self, layer: int, state: str) -> str:
        parts = (self.linear(state, *self.read(f"l{layer}.{part}")) for part in "qkv")
        attended = self.node("MultiHeadAttention", *parts, num_heads=self.weights.shape.heads)
        return self.linear(attended, *self.read(f"l{layer}.ao"))

    def inner(self, layer: int, state: str) -> str:
        inner = self.linear(state, *self.read(f"l{layer}.fi"))
        activated = self.node("Gelu", inner, output=f"l{layer}.activated")
        return self.linear(activated, *self.read(f"l{layer}.fo"))

    def linear(self, taken: str, matrix: Matrix, bias: Matrix) -> str:
        product = self.node("MatMul", taken, self.constant(matrix))
        return self.node("Add", product, self.constant(bias))

    def read(self, name: str) -> tuple[Matrix, Matrix]:
        """Return a matrix as (inputs, outputs), and its bias."""
        bias = self.weights.vector(f"{name}.b")
        return self.weights.columns(f"{name}.w", outputs=len(bias)), bias

    def _add(
        self, operator: str, inputs: Iterable[str], outputs: Iterable[str], **options: float
    ) -> None:
        domain = _CONTRIB if operator in _CONTRIB_OPERATORS else ""
        self.nodes.append(
            onnx_format.node(operator, inputs, outputs, domain=domain, options=options)
        )


class _RoundedGraph(_Graph):
    """The network with matrices rounded column by column, and their inputs to eight bits per text.

    With one range for all channels of an input, small values would be lost next to outliers. So
    each channel of the input is divided, and its row of the matrix multiplied, by how much it
    exceeds the others; and the few greatest activations, up to hundreds of times the others, stay
    in float32.
    """

    def __init__(self, weights: Tensors, outliers: Outliers, max_weight: int) -> None:
        super().__init__(weights)
        self._outliers = outliers
        self._max_weight = max_weight

    def attention(self, layer: int, state: str) -> str:
        divisors = self._outliers.attention[layer]
        matrices, biases = zip(*(self.read(f"l{layer}.{part}") for part in "qkv"), strict=True)
        factors, sizes = self._round(np.hstack(matrices) * divisors[:, None])
        value, scale, zero = (f"l{layer}.{part}" for part in ("rounded", "scale", "zero"))
        self._add("DynamicQuantizeLinear", [self._divide(state, divisors)], [value, scale, zero])
        bias = self.constant(np.hstack(biases))
        attended = self.node(
            "QAttention",
            *(value, factors, bias, scale, sizes, "", zero),
            num_heads=self.weights.shape.heads,
        )
        return self._add_rounded_linear(attended, *self.read(f"l{layer}.ao"))

    def inner(self, layer: int, state: str) -> str:
        divisors, great = self._outliers.inner[layer], self._outliers.activated[layer]
        first, first_bias = self.read(f"l{layer}.fi")
        second, second_bias = self.read(f"l{layer}.fo")
        rest = np.delete(np.arange(len(first_bias)), great)
        small = self._add_rounded_linear(
            self._divide(state, divisors), first[:, rest] * divisors[:, None], first_bias[rest]
        )
        large = self.linear(state, first[:, great], first_bias[great])
        return self.node(
            "Add",
            self._add_rounded_linear(self.node("Gelu", small), second[rest], second_bias),
            self.node("MatMul", self.node("Gelu", large), self.constant(second[great])),
        )

    def _divide(self, taken: str, divisors: Matrix) -> str:
        return self.node("Mul", taken, self.constant(1 / divisors))

    def _add_rounded_linear(self, taken: str, matrix: Matrix, bias: Matrix) -> str:
        factors, sizes = self._round(matrix)
        return self.node("DynamicQuantizeMatMul", taken, factors, sizes, "", self.constant(bias))

    def _round(self, matrix: Matrix) -> tuple[str, str]:
        sizes = np.abs(matrix).max(axis=0) / self._max_weight
        return self.constant(np.round(matrix / sizes).astype(np.int8)), self.constant(sizes)
