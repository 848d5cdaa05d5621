"""Fits the constants of confidence, and shows how well they hold where they were not fitted.

    python -m eval.fit_confidence --data DIR [--vectors DIR] [--write]

Every set's questions are asked of its own passages, and of every set's passages less those that
share a title with an answer, where all that is found is wrong. The model's vectors are kept in
``--vectors``: embedding five sets takes most of an hour. ``--write`` replaces the constants of
the portal and the diagrams in docs/.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from eval import sets
from eval.diagrams import reliability_diagram
from eval.measures import calibration_error
from eval.reference import Bm25, Floats, candidates, cosines, fuse_reference
from portal.domain.embedding import Embedder, Vector
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.embeddings.confidence import CONSTANTS, Evidence, Weighing, Weighings
from portal.settings import EmbeddingSettings
from portal.text.analyser import index_terms, query_terms
from portal.text.language import detect_language

DEPTH = 50
SHOWN = 10  # Results that are each other's rivals.
JUDGED = 5
# The best result is what people act on; the rest keep the fit from being about rank alone.
REST_WEIGHT = 0.15
RIDGE = 1e-3
# Across languages a first result is right less often and the evidence is weaker: without this a
# third of the right ones would be flagged. It costs little: off-topic ones stay flagged by 93%.
ON_TOPIC_SHARE_ACROSS = 3.0

BOTH = ("meaning", "words", "lead", "lead_best", "words_lead")
VECTOR = ("lead", "lead_best")
TEXT = ("words", "words_lead")


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A set with everything that ranking needs."""

    set: sets.QuestionSet
    passages: Vector
    questions: Vector
    terms: list[list[str]]
    languages: list[str]
    titles: list[str]


@dataclass(slots=True)
class Sample:
    """Judged results of one set's questions over one set's passages."""

    asked: str
    corpus: str
    on_topic: bool
    features: list[dict[str, float]] = field(default_factory=list)
    relevant: list[bool] = field(default_factory=list)
    first: list[bool] = field(default_factory=list)
    same_language: list[bool] = field(default_factory=list)

    def chances(self, weighings: Weighings) -> Floats:
        return np.array(
            [
                weighings.confidence(features, same_language=same)
                for features, same in zip(self.features, self.same_language, strict=True)
            ]
        )


def prepare(embedder: Embedder, directory: Path, name: str, vectors: Path) -> Material:
    question_set = sets.load(directory, name)
    passages = question_set.passages
    return Material(
        set=question_set,
        passages=_kept(
            vectors / f"{name}.docs.npy",
            lambda: embedder.embed_passages([p.text for p in passages]),
        ),
        questions=_kept(
            vectors / f"{name}.queries.npy",
            lambda: np.stack([embedder.embed_query(q.text) for q in question_set.questions]),
        ),
        terms=[index_terms(passage.text).split() for passage in passages],
        languages=[detect_language(passage.text) for passage in passages],
        titles=[passage.title for passage in passages],
    )


def _kept(path: Path, compute: Callable[[], Vector]) -> Vector:
    if path.exists():
        known: Vector = np.load(path)
        return known
    array = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return array


def sample(
    calibration: Calibration, asked: Material, corpus: Material, *, on_topic: bool
) -> Sample:
    """Ask one set's questions of one set's passages and keep the best results' features."""
    judged = Sample(asked.set.name, corpus.set.name, on_topic)
    ids = [passage.id for passage in corpus.set.passages]
    title_of = {p.id: p.title for p in asked.set.passages}
    bm25 = Bm25(corpus.terms)
    for question, vector in zip(asked.set.questions, asked.questions, strict=True):
        statistics = calibration.query_statistics(vector, question.text)
        terms = query_terms(question.text)
        words = bm25.scores(terms)
        likeness = cosines(corpus.passages, statistics.search_vector)
        if not on_topic:
            answers = {title_of[one] for one in question.relevant}
            hidden = np.array([title in answers for title in corpus.titles])
            words, likeness = np.where(hidden, 0, words), np.where(hidden, -1, likeness)
        places, seen = candidates(likeness, words, DEPTH)
        fused = fuse_reference(
            likeness[places],
            seen[places],
            v_lo=statistics.v_lo,
            v_width=statistics.v_width,
            text_floor=calibration.text_floor(len(terms), bm25.size),
        )
        shown = [places[place] for place in np.argsort(-fused, kind="stable")[:SHOWN]]
        plain = cosines(corpus.passages[shown], vector)
        evidence = [
            Evidence(
                document=place,
                language=corpus.languages[place],
                cosine=float(plain[rank]),
                corrected=float(likeness[place]),
                keyword=float(seen[place]),
            )
            for rank, place in enumerate(shown)
        ]
        scale = calibration.text_scale(len(terms), bm25.size)
        features = calibration.features(statistics, evidence, scale)
        for rank, place in enumerate(shown[:JUDGED]):
            judged.features.append(features[rank])
            judged.relevant.append(on_topic and ids[place] in question.relevant)
            judged.first.append(rank == 0)
            judged.same_language.append(corpus.languages[place] == statistics.language)
    return judged


def fit(samples: Sequence[Sample]) -> Weighings:
    """All three models; on-topic and off-topic questions weigh the same."""
    return Weighings(
        both=_fit_one(samples, BOTH, same_language=True),
        vector=_fit_one(samples, VECTOR, same_language=False),
        text=_fit_one(samples, TEXT, same_language=True),
        fitted=True,
    )


def _fit_one(samples: Sequence[Sample], names: Sequence[str], *, same_language: bool) -> Weighing:
    rows, outcomes, weights = [], [], []
    for topic in (True, False):
        chosen = [s for s in samples if s.on_topic is topic and same_language in s.same_language]
        for one in chosen:
            mine = [i for i, same in enumerate(one.same_language) if same is same_language]
            weight = np.where([one.first[i] for i in mine], 1.0, REST_WEIGHT)
            share = ON_TOPIC_SHARE_ACROSS if topic and not same_language else 1.0
            weights += (share * weight / weight.sum() / len(chosen)).tolist()
            rows += [[one.features[i][name] for name in names] for i in mine]
            outcomes += [one.relevant[i] for i in mine]
    solved = logistic(np.array(rows), np.array(outcomes, float), np.array(weights))
    return Weighing(
        weights={name: round(float(w), 3) for name, w in zip(names, solved, strict=False)},
        constant=round(float(solved[-1]), 3),
    )


def logistic(features: Floats, outcomes: Floats, weights: Floats, steps: int = 50) -> Floats:
    """Ridge-penalised logistic regression by Newton's method; the constant comes last."""
    x = np.column_stack([features, np.ones(len(features))])
    weights = weights / weights.sum()
    penalty = np.append(np.full(features.shape[1], RIDGE), 1e-9)
    solution = np.zeros(x.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(x @ solution, -30, 30)))
        slope = x.T @ (weights * (chance - outcomes)) + penalty * solution
        curve = (x * (weights * chance * (1 - chance))[:, None]).T @ x + np.diag(penalty)
        solution = solution - np.linalg.solve(curve, slope)
    return solution


@dataclass(frozen=True, slots=True)
class Row:
    """How constants do on one set: shares in [0, 1]; off-topic is the mean and the worst corpus."""

    name: str
    error_first: float
    error_shown: float
    relevant_flagged: float
    off_topic_flagged: float
    off_topic_worst: float


def assess(samples: Sequence[Sample], name: str, weighings: Weighings) -> Row:
    """A set's own questions, against as many off-topic ones from everywhere."""
    own = next(s for s in samples if s.asked == name and s.on_topic)
    foreign = [s for s in samples if s.asked == name and not s.on_topic]
    chances, first = own.chances(weighings), np.array(own.first)
    relevant = np.array(own.relevant)
    others = [(s.chances(weighings), np.array(s.first)) for s in foreign]
    flagged = [float((c[f] < 0.5).mean()) for c, f in others]
    rng = np.random.default_rng(0)
    wrong_first = rng.choice(np.concatenate([c[f] for c, f in others]), first.sum())
    wrong_shown = rng.choice(np.concatenate([c for c, _ in others]), len(chances))
    return Row(
        name=name,
        error_first=calibration_error(
            np.append(chances[first], wrong_first), np.append(relevant[first], wrong_first * 0)
        ),
        error_shown=calibration_error(
            np.append(chances, wrong_shown), np.append(relevant, wrong_shown * 0)
        ),
        relevant_flagged=float((chances[first & relevant] < 0.5).mean()),
        off_topic_flagged=float(np.mean(flagged)),
        off_topic_worst=min(flagged),
    )


def show(console: Console, title: str, rows: Sequence[Row]) -> None:
    table = Table(title=title)
    table.add_column("set")
    for heading in ("ECE of the first", "ECE of the first 5", "relevant first flagged low",
                    "off-topic first flagged low", "… in the worst corpus"):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in rows:
        values = (row.error_first, row.error_shown, row.relevant_flagged,
                  row.off_topic_flagged, row.off_topic_worst)  # fmt: skip
        table.add_row(row.name, *(f"{value:.3f}" for value in values))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of sets")
    parser.add_argument("--vectors", type=Path, default=Path("var/eval-vectors"))
    parser.add_argument("--provider", default="bundled")
    parser.add_argument("--write", action="store_true", help="keep the constants and diagrams")
    options = parser.parse_args()
    directory = sets.data_dir(options.data)
    embedder = create_embedder(EmbeddingSettings(provider=options.provider))
    calibration = Calibration.for_model(embedder)
    material = [
        prepare(embedder, directory, name, options.vectors) for name in sets.names(directory)
    ]
    samples = [sample(calibration, one, one, on_topic=True) for one in material]
    samples += [
        sample(calibration, asked, corpus, on_topic=False)
        for asked, corpus in product(material, material)
    ]
    names = [one.set.name for one in material]
    console = Console()
    left_out = [
        assess(samples, name, fit([s for s in samples if name not in {s.asked, s.corpus}]))
        for name in names
    ]
    show(console, "Constants fitted without the set they are tested on", left_out)
    weighings = fit(samples)
    show(console, "Constants fitted on all sets", [assess(samples, n, weighings) for n in names])
    console.print_json(json.dumps(as_constants(weighings)))
    if options.write:
        write(embedder.name, weighings, samples)


def as_constants(weighings: Weighings) -> dict[str, Any]:
    return {
        kind: {"weights": one.weights, "constant": one.constant}
        for kind in ("both", "vector", "text")
        if (one := getattr(weighings, kind))
    }


def write(model: str, weighings: Weighings, samples: Sequence[Sample]) -> None:
    constants = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    constants["models"][model] = as_constants(weighings)
    CONSTANTS.write_text(json.dumps(constants, indent=2) + "\n", encoding="utf-8")
    docs = Path(__file__).resolve().parents[1] / "docs"
    for name, same in (("same-language", True), ("across-languages", False)):
        pairs = [
            (chance, relevant)
            for one in samples
            for chance, relevant, first, language in zip(
                one.chances(weighings), one.relevant, one.first, one.same_language, strict=True
            )
            # A set has one on-topic sample and several off-topic ones: take one of each.
            if first and language is same and (one.on_topic or one.corpus != one.asked)
        ]
        svg = reliability_diagram(
            pairs, title=f"Confidence of first results, {name.replace('-', ' ')}"
        )
        (docs / f"confidence-{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
