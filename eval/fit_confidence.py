"""Fits the constants of confidence, and shows how well they hold where they were not fitted.

    python -m eval.fit_confidence [--data DIR] [--one-set] [--write]

A model's vectors are kept in var/eval; embedding five sets for the first time takes most of an
hour. ``--one-set`` also fits on each set alone and tests on all others; ``--write`` replaces the
constants of the portal and the diagrams in docs/.

The direction comes from a logistic regression. Where it crosses one half is set apart from that:
where as many right first results are flagged as questions without an answer are not, for the flag
is there to tell these two apart. The slope comes from the likeliest one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from eval import sets
from eval.diagrams import reliability_diagram
from eval.measures import auroc, calibration_error
from eval.reference import Floats
from eval.remembered import Remembered
from eval.samples import Judged, prepare, samples
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.confidence import CONSTANTS, FEATURES, Weighing, Weighings
from portal.settings import EmbeddingSettings

# The best result is what people act on; the rest keep the fit from being about rank alone.
REST_WEIGHT = 0.1
RIDGE = 1e-4
# Share of right first results flagged, over the share of questions without an answer that are not.
# A little below one: a right answer that is doubted is the worse mistake.
TRADE = 0.85
# Of the likeliest slope. A steeper one has less calibration error on sets that were not fitted to,
# where fewer results than here are among the doubtful ones.
SHARPNESS = 1.4
# Slopes that are tried, relative to the regression's.
_SLOPES = np.geomspace(0.3, 4, 60)


def fit(judged: Sequence[Judged]) -> Weighings:
    """All models of `FEATURES`. Every set and kind of collection weighs the same, and so do
    questions with and without an answer."""
    same = [one for one in judged if one.same_language]
    return Weighings(
        models={
            # Meaning alone has to judge results in any language, words only those in their own.
            kind: _fit_one(judged if kind == "vector" else same, names)
            for kind, names in FEATURES.items()
        },
        source="fitted",
    )


def _fit_one(judged: Sequence[Judged], names: Sequence[str]) -> Weighing:
    features = np.array([[one.features[name] for name in names] for one in judged])
    relevant = np.array([one.relevant for one in judged])
    answerable = np.array([one.answerable for one in judged])
    weights = balanced(judged, rest=REST_WEIGHT)
    solved = logistic(features, relevant.astype(float), weights)
    score = features @ solved[:-1]
    firsts = balanced(judged, rest=0.0)
    right = relevant & (firsts > 0)
    wrong = ~answerable & (firsts > 0)
    zero = _equal_error((score[right], firsts[right]), (score[wrong], firsts[wrong]))
    slope = SHARPNESS * _likeliest_slope(score - zero, relevant, weights)
    return Weighing(
        weights={
            name: round(float(weight * slope), 3)
            for name, weight in zip(names, solved, strict=False)
        },
        constant=round(float(-zero * slope), 3),
    )


def balanced(judged: Sequence[Judged], *, rest: float) -> Floats:
    """A weight a result: groups of set, kind and answerability weigh the same, results after the
    first `rest` of it, and answerable ones in all as much as the others."""
    keys = [(one.asked, one.part, one.answerable) for one in judged]
    groups = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    group = np.array([groups[key] for key in keys])
    base = np.array([1.0 if one.first else rest for one in judged])
    sums = np.bincount(group, weights=base)
    weights: Floats = base / np.where(sums > 0, sums, 1.0)[group]
    answerable = np.array([one.answerable for one in judged])
    for chosen in (answerable, ~answerable):
        if (total := weights[chosen].sum()) > 0:
            weights[chosen] /= 2 * total
    return weights


def logistic(features: Floats, outcomes: Floats, weights: Floats, steps: int = 40) -> Floats:
    """Ridge-penalised logistic regression by Newton's method; the constant comes last."""
    x = np.column_stack([features, np.ones(len(features))])
    weights = weights / weights.sum()
    penalty = np.append(np.full(features.shape[1], RIDGE), 1e-9)
    solution = np.zeros(x.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(x @ solution, -30, 30)))
        slope = x.T @ (weights * (chance - outcomes)) + penalty * solution
        curve = (x * (weights * chance * (1 - chance))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        solution -= step
        if np.abs(step).max() < 1e-7:
            break
    found: Floats = np.asarray(solution, float)
    return found


def _equal_error(right: tuple[Floats, Floats], wrong: tuple[Floats, Floats]) -> float:
    """The score below which the share of `right` is `TRADE` times that of `wrong` above it, both
    as (scores, weights)."""
    scores = np.concatenate([right[0], wrong[0]])
    places = np.quantile(scores, np.linspace(0.005, 0.995, 399))

    def below(sample: tuple[Floats, Floats]) -> Floats:
        order = np.argsort(sample[0])
        summed = np.append(0.0, np.cumsum(sample[1][order]) / sample[1].sum())
        found: Floats = summed[np.searchsorted(sample[0][order], places)]
        return found

    missed, passed = below(right), 1 - below(wrong)
    return float(places[np.argmin(np.abs(missed - TRADE * passed))])


def _likeliest_slope(score: Floats, relevant: Floats, weights: Floats) -> float:
    signs = np.where(relevant, -1.0, 1.0)
    losses = [
        float(weights @ np.logaddexp(0, np.clip(signs * slope * score, -50, 50)))
        for slope in _SLOPES
    ]
    return float(_SLOPES[int(np.argmin(losses))])


@dataclass(frozen=True, slots=True)
class Row:
    """How constants do on one set in one kind of collection: shares in [0, 1]. Errors count
    answerable and unanswerable questions the same."""

    asked: str
    part: str
    error_first: float
    error_shown: float
    relevant_flagged: float
    off_topic_flagged: float
    auroc: float


def assess(judged: Sequence[Judged], asked: str, part: str, weighings: Weighings) -> Row | None:
    """None where there is nothing to judge by."""
    chosen = [one for one in judged if one.asked == asked and one.part == part]
    firsts = [one for one in chosen if one.first]
    if len({one.answerable for one in firsts}) < 2:
        return None
    chances = {id(one): one.chance(weighings) for one in chosen}
    right = [chances[id(one)] for one in firsts if one.answerable and one.relevant]
    wrong = [chances[id(one)] for one in firsts if not one.answerable]
    if not right:
        return None

    def error(of: Sequence[Judged]) -> float:
        return calibration_error(
            [chances[id(one)] for one in of],
            [one.relevant for one in of],
            weights=balanced(of, rest=1.0),
        )

    return Row(
        asked=asked,
        part=part,
        error_first=error(firsts),
        error_shown=error(chosen),
        relevant_flagged=float(np.mean(np.array(right) < 0.5)),
        off_topic_flagged=float(np.mean(np.array(wrong) < 0.5)),
        auroc=auroc(right, wrong),
    )


def show(
    console: Console,
    title: str,
    judged: Sequence[Judged],
    weighings_for: Callable[[str], Weighings],
    parts: Sequence[str],
) -> list[Row]:
    table = Table(title=title)
    for heading in ("questions of", "asked of", "ECE of the first", "ECE of the first 5",
                    "right first flagged low", "off-topic flagged low", "AUROC"):  # fmt: skip
        table.add_column(heading, justify="left" if heading.endswith("of") else "right")
    rows = []
    for asked in dict.fromkeys(one.asked for one in judged):
        weighings = weighings_for(asked)
        for part in parts:
            if (row := assess(judged, asked, part, weighings)) is None:
                continue
            rows.append(row)
            table.add_row(
                asked, part, f"{row.error_first:.3f}", f"{row.error_shown:.3f}",
                f"{100 * row.relevant_flagged:.1f}%", f"{100 * row.off_topic_flagged:.1f}%",
                f"{row.auroc:.3f}",
            )  # fmt: skip
    console.print(table)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of sets")
    parser.add_argument("--provider", default="bundled")
    parser.add_argument("--one-set", action="store_true", help="also fit on each set alone")
    parser.add_argument("--write", action="store_true", help="keep the constants and diagrams")
    options = parser.parse_args()
    console = Console(width=120)
    embedder = Remembered(create_embedder(EmbeddingSettings(provider=options.provider)))
    calibration = Calibration.for_model(embedder)
    material = prepare(embedder, calibration, sets.data_dir(options.data))
    judged = samples(material, calibration)
    parts = list(dict.fromkeys(one.part for one in judged))
    show(
        console,
        "Constants fitted without the questions they are tested on",
        judged,
        lambda asked: fit([one for one in judged if one.asked != asked]),
        parts,
    )
    if options.one_set:
        for name in material.names:
            alone = fit_alone([one for one in judged if one.asked == name])
            if alone is not None:
                show(
                    console,
                    f"Fitted on {name} alone",
                    judged,
                    dict.fromkeys(material.names, alone).__getitem__,
                    ["whole"],
                )
    weighings = fit(judged)
    show(console, "Constants fitted on all sets", judged, lambda _: weighings, parts)
    console.print_json(json.dumps(as_constants(weighings)))
    if options.write:
        write(embedder.name, weighings, judged)


def fit_alone(judged: Sequence[Judged]) -> Weighings | None:
    """Constants from one set, None from one across languages: it says nothing about words."""
    if not any(one.relevant and one.same_language for one in judged):
        return None
    return fit(judged)


def as_constants(weighings: Weighings) -> dict[str, Any]:
    return {
        kind: {"weights": one.weights, "constant": one.constant}
        for kind, one in weighings.models.items()
    }


def write(model: str, weighings: Weighings, judged: Sequence[Judged]) -> None:
    constants = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    constants["models"][model] = as_constants(weighings)
    CONSTANTS.write_text(json.dumps(constants, indent=2) + "\n", encoding="utf-8")
    docs = Path(__file__).resolve().parents[1] / "docs"
    for name, same in (("same-language", True), ("across-languages", False)):
        pairs = [
            (one.chance(weighings), one.relevant)
            for one in judged
            if one.first and one.same_language is same and one.part == "whole"
        ]
        svg = reliability_diagram(
            pairs, title=f"Confidence of first results, {name.replace('-', ' ')}"
        )
        (docs / f"confidence-{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
