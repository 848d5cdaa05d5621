"""Train the maps by which statements are nearest to a question: `python -m eval.fitting.nearness`.

One linear map for the question's tokens and one for the statement's, from the identity on, and
a weight for each of the question's: the right statement has to come before others of its document
and of further ones. Takes the samples of `eval/data/team/train`, five minutes of one core, and
writes `portal/embeddings/e5/nearness.npz`; needs the extra with torch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from eval.fitting.reader import Lower
from eval.fitting.reader_samples import Sample, team_samples
from portal.embeddings.e5.reading import IN_CONTEXT, NEARNESS, Tokens, is_text

_SAMPLES_PER_STEP = 8
_RIGHT, _WRONG, _OF_OTHERS = 3, 20, 10
_LEARNING_RATE, _WARM_UP_STEPS = 3e-4, 50
_SHARPNESS_FASTER = 100
# How many numbers the maps that ship give for a token: as many find the right statement as 384.
_WIDTH = 128
# What it costs to leave the identity.
_COST = 1e-3
_SHARPNESS = 20.0


class Nearness(nn.Module):
    """The computation of `AnswerReader.similarities`, with gradients."""

    def __init__(self, centre: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("centre", centre)
        self.identity = torch.eye(len(centre))
        self.question, self.statement = (nn.Parameter(self.identity.clone()) for _ in range(2))
        self.weights = nn.Parameter(torch.zeros(len(centre)))
        self.sharpness = nn.Parameter(torch.tensor(_SHARPNESS))

    def forward(self, question: Tokens, statements: Sequence[Tokens]) -> torch.Tensor:
        """Return how near each statement is: (statements,)."""
        asked = torch.from_numpy(question.vectors[is_text(question)]) - self.centre
        said = _padded([torch.from_numpy(one.vectors) for one in statements]) - self.centre
        is_own = _padded(
            [
                torch.from_numpy(is_text(one) & (np.arange(len(one.pieces)) >= one.statement_start))
                for one in statements
            ]
        )
        is_any = _padded([torch.from_numpy(is_text(one)) for one in statements])
        cosines = torch.einsum(
            "qd,ntd->nqt",
            functional.normalize(asked @ self.question, dim=-1),
            functional.normalize(said @ self.statement, dim=-1),
        )
        own, above = (
            cosines.masked_fill(~mask[:, None], -1).amax(-1) for mask in (is_own, is_any & ~is_own)
        )
        return torch.maximum(own, IN_CONTEXT * above) @ torch.softmax(asked @ self.weights, 0)

    @property
    def distance(self) -> torch.Tensor:
        """Return how far the maps are from the identity."""
        return sum(((one - self.identity) ** 2).sum() for one in (self.question, self.statement))

    def shipped(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the tensors under the names that the portal reads, the maps to fewer numbers."""
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(self.question @ self.statement.T)
        found = {
            "question": (left * sizes.sqrt())[:, :_WIDTH],
            "statement": (right.T * sizes.sqrt())[:, :_WIDTH],
            "weights": self.weights.detach(),
            "centre": self.centre,
        }
        return {name: one.numpy().astype(np.float16) for name, one in found.items()}


def _padded(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return pad_sequence(list(tensors), batch_first=True)


def loss_of(
    nearness: Nearness, sample: Sample, others: Sequence[Sample], lower: Lower
) -> torch.Tensor:
    """Return how far a sample's right statements are from being the nearest."""
    wrong = [place for place in range(len(sample.statements)) if place not in sample.right]
    right = random.sample(sample.right, min(_RIGHT, len(sample.right)))
    taken = [*right, *random.sample(wrong, min(_WRONG, len(wrong)))]
    statements = [sample.statements[place] for place in taken]
    statements += [random.choice(one.statements) for one in random.choices(others, k=_OF_OTHERS)]
    pairs = [lower.pair(sample.question, one) for one in statements]
    near = nearness(pairs[0].question, [one.statement for one in pairs]) * nearness.sharpness
    return torch.logsumexp(near, 0) - torch.logsumexp(near[: len(right)], 0)


def train(samples: Sequence[Sample], epochs: float = 1.0) -> Nearness:
    """Train on the samples that have an answer."""
    lower = Lower()
    answered = [one for one in samples if one.right]
    others = [one for one in samples if one.statements]
    nearness = Nearness(lower.centre(samples[::9]))
    optimiser = torch.optim.Adam(
        [
            {"params": [nearness.question, nearness.statement, nearness.weights]},
            {"params": [nearness.sharpness], "lr": _LEARNING_RATE * _SHARPNESS_FASTER},
        ],
        lr=_LEARNING_RATE,
    )
    count = max(1, int(len(answered) * epochs / _SAMPLES_PER_STEP))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda done: max(0.05, 1 - done / count) * min(1, (done + 1) / _WARM_UP_STEPS)
    )
    losses = []
    for number in range(1, count + 1):
        batch = random.sample(answered, min(_SAMPLES_PER_STEP, len(answered)))
        loss = torch.stack([loss_of(nearness, one, others, lower) for one in batch]).mean()
        optimiser.zero_grad()
        (loss + _COST * nearness.distance).backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if number % 100 == 0:
            print(f"{number} of {count}: {np.mean(losses[-100:]):.3f}", flush=True)
    return nearness


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    np.savez_compressed(NEARNESS, **train(team_samples()).shipped())
    print(f"{NEARNESS} {NEARNESS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
