"""A synthetic corpus that every plan is tried on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bench import databases
from portal.container import build_services
from portal.database import bm25
from portal.domain.people import User
from portal.services.search.finding import Candidate
from portal.store.search.legs.trace import Trace
from portal.text.terms.analyser import index_terms
from tests.conftest import make_settings
from tests.integration.search.chunks import chunk_search
from tests.integration.search.plans.synthetic_corpus import SyntheticCorpus, load


@pytest.fixture(scope="module")
def corpus(
    server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SyntheticCorpus]:
    name = f"test_{uuid4().hex}"
    with databases.temporary(server_url, name, f"TEMPLATE {template}") as url:
        services = build_services(make_settings(Path(tmp_path_factory.mktemp("data")), url))
        loaded = load(services, synthetic_terms(SIZE))
        with services.database.engine.begin() as connection:
            bm25.ensure_index(connection)
        yield loaded
        services.database.dispose()


SIZE = 4_000
NEVER = {"exact_always_chunks": 0, "exact_chunks": 0, "exact_share": 0.0}
ENGLISH = """
    budget office window river engine ladder garden market salary travel contract
    harbour meeting holiday printer server invoice bicycle kitchen visitor
""".split()  # noqa: SIM905 - a list would take a line a word
CHINESE = """
    年假 报销 合同 会议 预算 办公室 打印机 服务器 发票
    员工 工资 出差 门禁 访客 厨房 花园 市场 河流
""".split()  # noqa: SIM905 - a list would take a line a word


def synthetic_terms(size: int) -> list[str]:
    """Return texts of a few to a few hundred words, alternating English and Chinese. Word
    frequencies are skewed; `common` is in three of four, most often in even-numbered ones."""
    rng = random.Random(1)
    texts = []
    for place in range(size):
        words = CHINESE if place % 4 >= 2 else ENGLISH
        length = int(3 * 2 ** rng.uniform(0, 5))
        chosen = [words[int(len(words) * rng.random() ** 3)] for _ in range(length)]
        repeats = 1 if place % 8 >= 4 else rng.randint(2, 4)
        chosen += ["common"] * (repeats if rng.random() < 0.75 else 0)
        texts.append(index_terms(" ".join(chosen)) + f" unique{place}")
    return texts


def find(
    corpus: SyntheticCorpus, user: User, query: str, vector: Any, **wishes: Any
) -> tuple[list[Candidate], Trace]:
    return chunk_search.find_chunks(
        corpus.services, user, query, vector, model=corpus.model, total_chunks=corpus.size, **wishes
    )
