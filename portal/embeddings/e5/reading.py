"""The reading of a question together with statements: the log odds that each answers it.

The first layers of the embedding network read question and statement separately, the others read
them together, with adapted weights. In between, every token is marked by how well the other side
matches it, by its vector and by its spelling: so the network need not find out what matches, only
what is asked.

Layers split after MacAvaney et al., PreTTR, SIGIR 2020; weights adapted after Hu et al., LoRA,
ICLR 2022. `eval/fitting/reader.py` trains them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portal.embeddings.e5 import graph
from portal.embeddings.e5.weights import Matrix, Shape, Weights

WEIGHTS, NEARNESS = (Path(__file__).parent / f"{name}.npz" for name in ("reader", "nearness"))
# The layer from which a question and a statement are read together.
JOINED_FROM = 6
MAX_QUESTION_TOKENS, MAX_CONTEXT_TOKENS, MAX_STATEMENT_TOKENS = 40, 30, 90
# The cosine of a token's best match is given as steps at these values, 0.05 wide.
_STEPS = np.linspace(0.1, 0.9, 9, dtype=np.float32)
_STEEPNESS = 20
# The steps in the statement and in the context; the same piece in the statement, in the context.
FEATURES = 2 * len(_STEPS) + 2
IN_CONTEXT = 0.85
_BEFORE_TEXT = 3  # The start token and the two pieces of the prefix.


@dataclass(frozen=True, slots=True)
class Tokens:
    """The pieces of a text and their vectors, (tokens, width). The pieces from `statement_start`
    are the statement, those before its context; 0 for a question."""

    pieces: NDArray[np.int64]
    vectors: Matrix
    statement_start: int = 0


class AdaptedWeights:
    """The network's tensors with the reader's changes."""

    def __init__(self, weights: Weights, changes: dict[str, Matrix]) -> None:
        self._weights = weights
        self._changes = changes
        self.shape: Shape = weights.shape

    def vector(self, name: str) -> Matrix:
        return self._changes.get(name, self._weights.vector(name))

    def columns(self, name: str, *, outputs: int) -> Matrix:
        low, high = self._changes[f"{name}.low"], self._changes[f"{name}.high"]
        return self._weights.columns(name, outputs=outputs) + low @ high


def read_stored(path: Path) -> dict[str, Matrix]:
    """Return the tensors of a file of weights."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


class AnswerReader:
    """The adapted layers as a separate network. Thread-safe; not across a fork."""

    def __init__(self, weights: Weights, precision: str, start_session: Any) -> None:
        """Load the changes and build the network. `start_session` takes the ONNX model."""
        self._changes, self._nearness = map(read_stored, (WEIGHTS, NEARNESS))
        adapted = AdaptedWeights(weights, self._changes)
        self._output = graph.layer_output(weights.shape.layers - 1)
        self._session = start_session(graph.build(adapted, precision, first_layer=JOINED_FROM))

    def similarities(self, question: Tokens, statements: Sequence[Tokens]) -> list[float]:
        """Return for each statement the weighted mean cosine of the question's tokens to the
        nearest ones of the statement; those of its context count a little less."""
        maps, text = self._nearness, is_text(question)
        if not text.any():
            return [0.0] * len(statements)
        centred = question.vectors[text] - maps["centre"]
        asked = _unit(np.matmul(centred, maps["question"]))
        weights = np.exp(centred @ maps["weights"])
        weights /= weights.sum()
        found = []
        for one in statements:
            said = _unit(np.matmul(one.vectors - maps["centre"], maps["statement"]))
            cosines, start = asked @ said.T, one.statement_start
            cosines[:, ~is_text(one)] = -1
            nearest = cosines[:, start:].max(axis=1, initial=-1)
            above = cosines[:, :start].max(axis=1, initial=-1)
            found.append(float(weights @ np.maximum(nearest, IN_CONTEXT * above)))
        return found

    def log_odds(self, question: Tokens, statement: Tokens) -> float:
        """Return the log odds that a statement answers a question."""
        changes = self._changes
        asked, said = matches(question, statement, changes["centre"])
        segments = changes["segments"]
        is_statement = np.arange(len(statement.pieces)) >= statement.statement_start
        joined = np.concatenate(
            [
                question.vectors + segments[0] + asked @ changes["question_matches"],
                statement.vectors
                + segments[np.where(is_statement, 2, 1)]
                + said @ changes["statement_matches"],
            ]
        )
        ((read,),) = self._session.run([self._output], {graph.INPUT: joined[None]})
        pooled = np.concatenate([read[0], read.mean(axis=0)])
        matched = np.concatenate(
            [asked.mean(axis=0), said[statement.statement_start :].mean(axis=0)]
        )
        hidden = np.tanh(matched @ changes["matches_in"] + changes["matches_in.b"])
        by_matches = hidden @ changes["matches_out"] + changes["matches_out.b"]
        return float((pooled @ changes["head"] + changes["head.b"] + by_matches)[0])


def matches(question: Tokens, statement: Tokens, centre: Matrix) -> tuple[Matrix, Matrix]:
    """Return how well the other side matches each token of the question and of the statement:
    (tokens, FEATURES) of 0 to 1."""
    start, width = statement.statement_start, len(_STEPS)
    own, other = is_text(question), is_text(statement)
    cosines = _unit(question.vectors - centre) @ _unit(statement.vectors - centre).T
    cosines[~own] = cosines[:, ~other] = -1
    asked = np.zeros((len(question.pieces), FEATURES), np.float32)
    said = np.zeros((len(statement.pieces), FEATURES), np.float32)
    asked[:, :width] = _steps(cosines[:, start:].max(axis=1, initial=-1))
    asked[:, width : 2 * width] = _steps(cosines[:, :start].max(axis=1, initial=-1))
    said[:, :width] = _steps(cosines.max(axis=0, initial=-1))
    asked[:, -2] = np.isin(question.pieces, statement.pieces[start:][other[start:]])
    asked[:, -1] = np.isin(question.pieces, statement.pieces[:start][other[:start]])
    said[:, -2] = np.isin(statement.pieces, question.pieces[own])
    asked[~own] = said[~other] = 0
    return asked, said


def _unit(vectors: Matrix) -> Matrix:
    unit: Matrix = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return unit


def is_text(tokens: Tokens) -> NDArray[np.bool_]:
    """Return which tokens are neither the start, the prefix nor an end."""
    places = np.arange(len(tokens.pieces))
    ends = (places == len(places) - 1) | (places == tokens.statement_start - 1)
    inside: NDArray[np.bool_] = ~ends & (places >= _BEFORE_TEXT)
    return inside


def _steps(cosines: Matrix) -> Matrix:
    steps: Matrix = 1 / (1 + np.exp(-(cosines[:, None] - _STEPS) * _STEEPNESS))
    return steps
