"""Train the network that reads questions and statements together: `python -m eval.fitting.reader`.

Only the upper layers change, by low-rank additions; what the lower ones give is computed once a
text. Takes the samples of `eval/data/team/train` and, with `--data`, those of the public sets, and
writes `portal/embeddings/e5/reader.npz`: half an hour on two cores with AMX. With `--resume` it
goes on from these weights with the questions of `eval/data/near-misses` and `eval/data/other-words`
and what a portal reads of the folders in `read_samples`, and takes the mean of both: an hour to ask
the questions, and one to train. The shipped weights were resumed more than once. Needs the extra
with torch.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from eval.fitting import pairs
from eval.fitting.read_samples import FOLDERS, read_samples
from eval.fitting.reader_samples import Sample, Statement, public_samples, team_samples
from portal.embeddings.e5 import FLOAT32, E5Encoder
from portal.embeddings.e5.encoder import weights_path
from portal.embeddings.e5.reading import (
    FEATURES,
    JOINED_FROM,
    WEIGHTS,
    Tokens,
    matches,
    read_stored,
)
from portal.embeddings.e5.weights import Matrix, Weights

_RANK = 32
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_SAMPLES_PER_STEP = 6
_WRONG_PER_SAMPLE = 5
# What a resumed training takes a step: statements that nearly answer, samples in other words, what
# a portal reads, and others.
_NEAR_PER_STEP, _OTHER_WORDS_PER_STEP, _READ_PER_STEP, _OTHERS_PER_STEP = 10, 2, 8, 1
_RIGHT_OF_READ, _WRONG_OF_READ = 3, 7
_BUCKET = 16
_LEARNING_RATE, _WARM_UP, _MAX_NORM = 1e-3, 0.06, 1.0
_MATCHES_WIDTH = 32
# From the start, and from earlier weights on.
_STEPS, _FURTHER_STEPS, _FURTHER_RATE = 2_500, 900, 7e-4
_NO_MATCH = -1e9
# Half precision loses nothing here and is three times as fast.
_HALF = torch.bfloat16


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a statement as the lower layers read them, and their matches."""

    question: Tokens
    statement: Tokens


class Adapted(nn.Module):
    """A matrix of the network with a low-rank addition."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        bias = weights.vector(f"{name}.b").copy()
        matrix = torch.from_numpy(weights.columns(f"{name}.w", outputs=len(bias)))
        self.register_buffer("matrix", matrix, persistent=False)
        self.low = nn.Parameter(torch.randn(len(matrix), _RANK) / math.sqrt(len(matrix)))
        self.high = nn.Parameter(torch.zeros(_RANK, len(bias)))
        self.b = nn.Parameter(torch.from_numpy(bias))
        self.merge()

    def merge(self) -> None:
        """Add once a step what all texts of the step use."""
        self.merged = (self.matrix + self.low @ self.high).T.to(_HALF), self.b.to(_HALF)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return functional.linear(states, *self.merged)


class Normalised(nn.Module):
    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.w, self.b = (
            nn.Parameter(torch.from_numpy(weights.vector(f"{name}.{one}").copy())) for one in "wb"
        )
        self.epsilon = weights.shape.epsilon

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        kind = states.dtype
        return functional.layer_norm(
            states, self.w.shape, self.w.to(kind), self.b.to(kind), self.epsilon
        )


class Layer(nn.Module):
    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()
        self.heads = weights.shape.heads
        for name in _MATRICES:
            self.add_module(name, Adapted(weights, f"l{number}.{name}"))
        for name in ("aln", "oln"):
            self.add_module(name, Normalised(weights, f"l{number}.{name}"))

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        texts, tokens, width = states.shape
        q, k, v = (
            one(states).view(texts, tokens, self.heads, -1).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        shares = ((q @ k.transpose(-1, -2)) / math.sqrt(width / self.heads) + mask).softmax(-1)
        attended = (shares @ v).transpose(1, 2).reshape(texts, tokens, width)
        states = self.aln(states + self.ao(attended))
        return self.oln(states + self.fo(functional.gelu(self.fi(states))))


class Reader(nn.Module):
    """What `portal.embeddings.e5.reading` runs, with gradients."""

    def __init__(self, weights: Weights, centre: torch.Tensor) -> None:
        super().__init__()
        width = weights.shape.width
        self.layers = nn.ModuleList(
            Layer(weights, number) for number in range(JOINED_FROM, weights.shape.layers)
        )
        self.register_buffer("centre", centre)
        self.segments = nn.Parameter(torch.zeros(3, width))
        self.question_matches = nn.Parameter(0.02 * torch.randn(FEATURES, width))
        self.statement_matches = nn.Parameter(0.02 * torch.randn(FEATURES, width))
        self.head = nn.Linear(2 * width, 1)
        nn.init.normal_(self.head.weight, std=0.01)
        self.matches_in = nn.Linear(2 * FEATURES, _MATCHES_WIDTH)
        self.matches_out = nn.Linear(_MATCHES_WIDTH, 1)

    def forward(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Return the log odds of each pair: (pairs,)."""
        for module in self.modules():
            if isinstance(module, Adapted):
                module.merge()
        # Texts of similar length together, so that little is padding.
        order = sorted(range(len(pairs)), key=lambda place: _length(pairs[place]))
        found = torch.cat(
            [
                self._bucket([pairs[place] for place in order[start : start + _BUCKET]])
                for start in range(0, len(order), _BUCKET)
            ]
        )
        return found[torch.argsort(torch.tensor(order))]

    def _bucket(self, pairs: Sequence[Pair]) -> torch.Tensor:
        length, width = max(map(_length, pairs)), self.segments.shape[1]
        states = torch.zeros(len(pairs), length, width)
        mask = torch.full((len(pairs), 1, 1, length), _NO_MATCH)
        pooled, matched = torch.zeros(len(pairs), length), []
        rows = []
        for row, pair in enumerate(pairs):
            asked, said = map(
                torch.from_numpy, matches(pair.question, pair.statement, self.centre.numpy())
            )
            places = torch.arange(len(said)) >= pair.statement.statement_start
            total = _length(pair)
            states[row, :total] = torch.cat(
                [
                    torch.from_numpy(pair.question.vectors),
                    torch.from_numpy(pair.statement.vectors),
                ]
            )
            rows.append(
                functional.pad(
                    torch.cat(
                        [
                            self.segments[0] + asked @ self.question_matches,
                            self.segments[1 + places.long()] + said @ self.statement_matches,
                        ]
                    ),
                    (0, 0, 0, length - total),
                )
            )
            mask[row, ..., :total] = 0
            pooled[row, :total] = 1 / total
            matched.append(torch.cat([asked.mean(0), said[places].mean(0)]))
        states = (states + torch.stack(rows)).to(_HALF)
        for layer in self.layers:
            states = layer(states, mask.to(_HALF))
        read = states.float()
        means = (read * pooled[..., None]).sum(1)
        by_text = self.head(
            functional.dropout(torch.cat([read[:, 0], means], -1), 0.1, self.training)
        )
        by_matches = self.matches_out(torch.tanh(self.matches_in(torch.stack(matched))))
        return (by_text + by_matches).squeeze(-1)

    def shipped(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the tensors under the names that the portal reads."""
        return {name: one.astype(np.float16) for name, one in self.tensors().items()}

    def tensors(self) -> dict[str, Matrix]:
        """Return them in single precision, as views."""
        return {name: one.detach().numpy() for name, one in self._named()}

    def take(self, weights: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Take over the weights of an earlier training, whose low-rank additions may be of a lower
        rank: the rest of these begins without effect."""
        with torch.no_grad():
            for name, one in self._named():
                taken = torch.from_numpy(weights[name])
                one[tuple(map(slice, taken.shape))] = taken

    def _named(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the tensors, as views, with the names that the portal reads."""
        for number, layer in enumerate(self.layers, start=JOINED_FROM):
            for name in _MATRICES:
                one = getattr(layer, name)
                yield from ((f"l{number}.{name}.w.{p}", getattr(one, p)) for p in ("low", "high"))
                yield f"l{number}.{name}.b", one.b
            for name in ("aln", "oln"):
                one = getattr(layer, name)
                yield from ((f"l{number}.{name}.{part}", getattr(one, part)) for part in "wb")
        for name in ("centre", "segments", "question_matches", "statement_matches"):
            yield name, getattr(self, name)
        for name in ("head", "matches_in", "matches_out"):
            one = getattr(self, name)
            yield name, one.weight.T
            yield f"{name}.b", one.bias


def mean_of(weights: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, Matrix]:
    """Return the mean of several trainings, of a low-rank addition by its product: better than each
    where one went on from the other (Wortsman et al., Model soups, ICML 2022)."""
    names = [name for name in weights[0] if not name.endswith((".low", ".high"))]
    found = {name: np.mean([one[name] for one in weights], axis=0) for name in names}
    for low in [name for name in weights[0] if name.endswith(".low")]:
        high = low.removesuffix("low") + "high"
        product = np.mean([one[low] @ one[high] for one in weights], axis=0)
        left, sizes, right = np.linalg.svd(product, full_matrices=False)
        roots = np.sqrt(sizes[:_RANK])
        found[low], found[high] = left[:, :_RANK] * roots, roots[:, None] * right[:_RANK]
    return found


def _length(pair: Pair) -> int:
    return len(pair.question.pieces) + len(pair.statement.pieces)


class Lower:
    """The lower layers' reading of every text, kept."""

    def __init__(self) -> None:
        self._encoder = E5Encoder(FLOAT32)
        self._questions: dict[str, Tokens] = {}
        self._statements: dict[Statement, Tokens] = {}

    def pair(self, question: str, statement: Statement) -> Pair:
        if question not in self._questions:
            self._questions[question] = _narrowed(self._encoder.read_question(question))
        if statement not in self._statements:
            self._statements[statement] = _narrowed(self._encoder.read_statement(*statement))
        asked, said = self._questions[question], self._statements[statement]
        return Pair(_widened(asked), _widened(said))

    def centre(self, samples: Iterable[Sample]) -> torch.Tensor:
        """Return the mean vector of all tokens of some statements."""
        pairs = [self.pair(one.question, one.statements[0]) for one in samples]
        return torch.from_numpy(np.concatenate([one.statement.vectors for one in pairs]).mean(0))


def _narrowed(tokens: Tokens) -> Tokens:
    return Tokens(tokens.pieces, tokens.vectors.astype(np.float16), tokens.statement_start)


def _widened(tokens: Tokens) -> Tokens:
    return Tokens(tokens.pieces, tokens.vectors.astype(np.float32), tokens.statement_start)


def chosen(sample: Sample, others: Sequence[Sample], lower: Lower) -> tuple[list[Pair], int]:
    """Return the right statements of a sample, then some wrong ones, and the number of the former:
    half of these share most with the question, one is of another document."""
    right = random.sample(sample.right, min(4, len(sample.right)))
    wrong = [place for place in range(len(sample.statements)) if place not in sample.right]
    random.shuffle(wrong)
    asked = set(sample.question)
    wrong.sort(key=lambda place: (place not in sample.tempting, random.random()))
    near = sorted(wrong[2:22], key=lambda place: -len(asked & set(sample.statements[place][1])))
    taken = [*wrong[:2], *near[: _WRONG_PER_SAMPLE // 2]]
    taken += [place for place in wrong if place not in taken]
    statements = [sample.statements[place] for place in [*right, *taken[:_WRONG_PER_SAMPLE]]]
    other = random.choice(others)
    if other.document != sample.document and other.statements:
        statements.append(random.choice(other.statements))
    return [lower.pair(sample.question, one) for one in statements], len(right)


def loss_of(odds: torch.Tensor, right: int, *, all_right: bool) -> torch.Tensor:
    """Return the loss of a sample: its right statements come first.

    One of them has to answer, or each with `all_right`; of the others the likeliest weighs most.
    """
    wrong = functional.softplus(odds[right:])
    hardest = (wrong * torch.softmax(odds[right:].detach(), 0)).sum()
    if not right:
        return hardest
    found = odds[:right]
    best = found.max()
    right_loss = functional.softplus(-found).mean() if all_right else functional.softplus(-best)
    ranking = torch.logsumexp(torch.cat([best[None], odds[right:]]), 0) - best
    return right_loss + (hardest + wrong.mean() + ranking) / 2


def chosen_of_read(sample: Sample, lower: Lower) -> tuple[list[Pair], int]:
    """Return the same of what a portal read: the tempting ones, and of the others a few."""
    right = random.sample(sample.right, min(_RIGHT_OF_READ, len(sample.right)))
    known = {*sample.right, *sample.tempting}
    others = [place for place in range(len(sample.statements)) if place not in known]
    few = random.sample(others, min(_WRONG_OF_READ - len(sample.tempting), len(others)))
    places = [*right, *sample.tempting, *few]
    return [lower.pair(sample.question, sample.statements[one]) for one in places], len(right)


def _in_turn(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield the samples again and again, each time in another order."""
    while samples:
        yield from random.sample(samples, len(samples))


def train(
    samples: Sequence[Sample],
    steps: int,
    further: Sequence[tuple[Sequence[Sample], int]] = (),
    resumed: Path | None = None,
) -> Reader:
    """Train on samples, from the start or from the weights in `resumed` on. Of `further` samples
    a step has the number that is given with them."""
    lower = Lower()
    reader = Reader(Weights(weights_path()), lower.centre(samples[::9]))
    before = None if resumed is None else read_stored(resumed)
    if before is not None:
        reader.take(before)
    parameters = list(reader.parameters())
    rate = _LEARNING_RATE if resumed is None else _FURTHER_RATE
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda done: min(1.0, done / (_WARM_UP * steps + 1)) * max(0.02, 1 - done / steps),
    )
    in_turn = _in_turn(samples)
    further_in_turn = [(_in_turn(some), count) for some, count in further]
    losses = []
    for number in range(1, steps + 1):
        batch = list(islice(in_turn, _OTHERS_PER_STEP if further else _SAMPLES_PER_STEP))
        groups = [chosen(sample, samples, lower) for sample in batch]
        more = [one for some, count in further_in_turn for one in islice(some, count)]
        groups += [chosen_of_read(sample, lower) for sample in more]
        odds = reader([pair for pairs, _ in groups for pair in pairs])
        parts = torch.split(odds, [len(pairs) for pairs, _ in groups])
        loss = torch.stack(
            [
                loss_of(part, right, all_right=sample.all_right)
                for part, (pairs, right), sample in zip(parts, groups, batch + more, strict=True)
                if right < len(pairs)
            ]
        ).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, _MAX_NORM)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if number % 50 == 0:
            print(f"{number} of {steps}: {np.mean(losses[-50:]):.3f}", flush=True)
    if before is not None:
        trained = reader.tensors()
        # Half of what the earlier ones knew is kept (docs/answer-quality-notes.md).
        reader.take(mean_of([before, trained]))
    return reader.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of public sets to train on as well")
    parser.add_argument("--resume", action="store_true", help="go on from the present weights")
    asked = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    samples = team_samples() + (public_samples(asked.data) if asked.data else [])
    if asked.resume:
        read = [sample for folder in FOLDERS for sample in read_samples(folder)]
        near = pairs.samples_to_train(pairs.NEAR_MISSES)
        reworded = pairs.samples_to_train(pairs.OTHER_WORDS)
        further = (
            (near, _NEAR_PER_STEP),
            (reworded, _OTHER_WORDS_PER_STEP),
            (read, _READ_PER_STEP),
        )
        reader = train(samples, _FURTHER_STEPS, further, WEIGHTS)
    else:
        reader = train(samples, _STEPS)
    np.savez_compressed(WEIGHTS, **reader.shipped())
    print(f"{WEIGHTS} {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
