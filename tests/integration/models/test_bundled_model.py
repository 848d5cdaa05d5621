"""With the bundled model, an English query finds the content of Chinese files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from portal.domain.documents import DocumentStatus
from portal.domain.search import SearchRequest
from portal.services import Services
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories import files

REEF = ["珊瑚礁保护条例", "第一条 潜水员不得触摸珊瑚。违者罚款五百元，并在三年内不得再次下水。"]
LEAVE = "休假制度\n\n员工入职满一年后，每年享有十五天带薪年假。病假需要医院开具的证明。"
DISTRACTORS = {
    "tea.txt": "绿茶应在阴凉干燥处保存，开封后三个月内饮用完毕。",
    "train.txt": "开往北京的高速列车每天上午八点从三号站台发车。",
    "lamp.md": "# Lighthouse\n\nThe lamp must be lit twenty minutes before sunset.",
    "bread.txt": "Knead the dough for ten minutes and let it rise until it has doubled.",
}


@pytest.fixture
def portal(make_reading_services: Callable[..., Services], tmp_path: Path) -> Portal:
    portal = Portal.of(make_reading_services())
    pdf = files.write_pdf(tmp_path / "reef.pdf", [REEF])
    portal.add(pdf.read_bytes(), name="reef.pdf")
    portal.add(LEAVE.encode("gb18030"), name="leave.txt")
    for name, text in DISTRACTORS.items():
        assert portal.add(text, name=name).status is DocumentStatus.READY
    return portal


TITLES = {
    "触摸珊瑚罚多少钱": "reef",
    "What is the fine for touching coral?": "reef",
    "年假有几天": "leave",
    "How many days of paid annual leave do employees get?": "leave",
    "灯塔的灯什么时候点亮？": "lamp",
    "緑茶怎麼保存": "tea",
    "年假幾天": "leave",
}


def test_question_finds_its_document_first(portal: Portal) -> None:
    found = {
        question: engine.search(portal.services, portal.admin, SearchRequest(question))
        .hits[0]
        .title
        for question in TITLES
    }
    assert found == TITLES


def test_off_topic_question_is_flagged(portal: Portal) -> None:
    question = "Which galaxy is nearest to the Milky Way?"
    outcome = engine.search(portal.services, portal.admin, SearchRequest(question))
    assert outcome.off_topic
    assert all(hit.low_confidence for hit in outcome.hits)


def test_plain_question_is_answered_with_confidence(portal: Portal) -> None:
    outcome = engine.search(portal.services, portal.admin, SearchRequest("带薪年假有几天？"))
    assert not outcome.hits[0].low_confidence
    assert not outcome.off_topic
