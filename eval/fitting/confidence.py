"""Fit the constants of confidence, and show how well they hold where they were not fitted.

    python -m eval.fitting.confidence [--data DIR] [--one-set] [--write]

A model's vectors are kept in var/eval; embedding five sets for the first time takes most of an
hour. ``--one-set`` also fits on each set alone and tests on all others; ``--write`` replaces the
constants of the portal and the diagrams in docs/.

The direction comes from a logistic regression. Where it crosses one half is set apart from that, by
the share of questions without an answer that are to be flagged (`CUTS`), for results in the
question's language and for those in another: the flag is there to keep these questions out, and how
many right results that costs follows.
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
from eval.cached_embedder import CachedEmbedder
from eval.diagrams import reliability_diagram
from eval.fitting import logistic
from eval.measures import auroc, calibration_error
from eval.reference import Floats
from eval.samples import Judged, prepare, samples
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration.confidence import (
    ACROSS,
    CONSTANTS,
    FEATURES,
    TRANSLATED,
    ConfidenceModels,
    LogisticModel,
)
from portal.settings import EmbeddingSettings

# Users act on the best result; the rest keep the fit from depending on rank alone.
REST_WEIGHT = 0.1
ALL_SETS = "all sets"
MIXTURES = ("mixed", "several mixed")
RIDGE = 1e-4


@dataclass(frozen=True, slots=True)
class Cut:
    """The place where a model crosses one half.

    `flagged` is the share of first results of questions without an answer that lie below it.
    `steeper` is its slope, relative to the regression's.
    """

    flagged: float
    steeper: float


# Of the models of results in another language, and of all others. More are flagged than the
# required nine tenths: on sets it was not fitted to the share is one to four points lower, and in a
# library of several languages, where more chunks compete, up to four points lower again. Across
# languages the vector evidence says more than the regression shows, since most of its rows are
# within one language.
CUTS = {ACROSS: Cut(flagged=0.935, steeper=1.8), TRANSLATED: Cut(flagged=0.95, steeper=1.5)}
SAME_LANGUAGE = Cut(flagged=0.97, steeper=1.2)


def fit(judged: Sequence[Judged]) -> ConfidenceModels:
    """Fit all models of `FEATURES`.

    Every set and kind of collection has the same weight, and so do questions with and without an
    answer.
    """
    same = [one for one in judged if one.same_language]
    translated = [one for one in judged if "translated" in one.features]
    # The vector-only model has to judge results in any language, the keyword model only the same
    # one.
    taken = {"vector": judged, ACROSS: judged, TRANSLATED: translated}
    rows = {kind: taken.get(kind, same) for kind in FEATURES}
    models = {kind: _fit_one(of, kind) for kind, of in rows.items() if of}
    # Sets in one language have no translations.
    return ConfidenceModels(models={TRANSLATED: models[ACROSS], **models}, source="fitted")


def _fit_one(judged: Sequence[Judged], kind: str) -> LogisticModel:
    names = FEATURES[kind]
    features = np.array([[one.features[name] for name in names] for one in judged])
    relevant = np.array([one.relevant for one in judged])
    solved = with_constant(features, relevant.astype(float), balanced(judged, rest=REST_WEIGHT))
    wrong = [place for place, one in enumerate(judged) if one.first and not one.answerable]
    # Sets in one language have no results in another, so their own-language results are used.
    wrong = [place for place in wrong if judged[place].same_language is not (kind in CUTS)] or wrong
    cut = CUTS.get(kind, SAME_LANGUAGE)
    weights = balanced([judged[place] for place in wrong], rest=0.0)
    zero = weighted_quantile(features[wrong] @ solved[:-1], weights, cut.flagged)
    return LogisticModel(
        weights={
            name: round(float(weight * cut.steeper), 3)
            for name, weight in zip(names, solved, strict=False)
        },
        constant=round(float(-zero * cut.steeper), 3),
    )


def balanced(judged: Sequence[Judged], *, rest: float) -> Floats:
    """Return a weight per result.

    Groups of set, kind and answerability weigh the same, results after the first `rest` of it, and
    answerable ones in total as much as the others.
    """
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


def with_constant(features: Floats, outcomes: Floats, weights: Floats) -> Floats:
    """Fit the weights of features and a constant, which comes last."""
    columns = np.column_stack([features, np.ones(len(features))])
    ridge = np.append(np.full(features.shape[1], RIDGE), 1e-9)
    return logistic.fit(columns, outcomes, weights / weights.sum(), ridge)


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return the value that `share` of the total weight is at or below."""
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


@dataclass(frozen=True, slots=True)
class Row:
    """How constants perform on one set in one kind of collection: shares in [0, 1].

    Errors count answerable and unanswerable questions the same.
    """

    asked: str
    part: str
    error_first: float
    error_shown: float
    relevant_flagged: float
    off_topic_flagged: float
    auroc: float


def assess(judged: Sequence[Judged], asked: str, part: str, models: ConfidenceModels) -> Row | None:
    """Evaluate constants on one set's questions, or on all sets, in one kind of collection.

    `ALL_SETS` selects all. Returns None if there are no results.
    """
    chosen = [one for one in judged if asked in {one.asked, ALL_SETS} and one.part == part]
    firsts = [one for one in chosen if one.first]
    if len({one.answerable for one in firsts}) < 2:
        return None
    chances = {id(one): one.chance(models) for one in chosen}
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
    models_for: Callable[[str], ConfidenceModels],
    parts: Sequence[str],
    *,
    overall: bool = False,
) -> list[Row]:
    table = Table(title=title)
    for heading in ("questions of", "asked of", "ECE of the first", "ECE of the first 5",
                    "right first flagged low", "off-topic flagged low", "AUROC"):  # fmt: skip
        table.add_column(heading, justify="left" if heading.endswith("of") else "right")
    rows = []
    for asked in [*dict.fromkeys(one.asked for one in judged), *([ALL_SETS] if overall else [])]:
        models = models_for(asked)
        for part in parts:
            if (row := assess(judged, asked, part, models)) is None:
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
    embedder = CachedEmbedder(create_embedder(EmbeddingSettings(provider=options.provider)))
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
    pure = fit([one for one in judged if one.part not in MIXTURES])
    show(
        console, "Constants fitted without mixtures", judged, lambda _: pure, MIXTURES, overall=True
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
    models = fit(judged)
    show(console, "Constants fitted on all sets", judged, lambda _: models, parts)
    console.print_json(json.dumps(as_constants(models)))
    if options.write:
        write(embedder.name, models, judged)


def fit_alone(judged: Sequence[Judged]) -> ConfidenceModels | None:
    """Fit constants on one set.

    Returns None for a set across languages, which says nothing about words.
    """
    if not any(one.relevant and one.same_language for one in judged):
        return None
    return fit(judged)


def as_constants(models: ConfidenceModels) -> dict[str, Any]:
    return {
        kind: {"weights": one.weights, "constant": one.constant}
        for kind, one in models.models.items()
    }


def write(model: str, models: ConfidenceModels, judged: Sequence[Judged]) -> None:
    constants = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    constants["models"][model] = as_constants(models)
    CONSTANTS.write_text(json.dumps(constants, indent=2) + "\n", encoding="utf-8")
    docs = Path(__file__).resolve().parents[2] / "docs"
    for name, same in (("same-language", True), ("across-languages", False)):
        pairs = [
            (one.chance(models), one.relevant)
            for one in judged
            if one.first and one.same_language is same and one.part == "whole"
        ]
        svg = reliability_diagram(
            pairs, title=f"Confidence of first results, {name.replace('-', ' ')}"
        )
        (docs / f"confidence-{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
