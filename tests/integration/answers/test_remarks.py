"""Remarks on an answer, such as "tell me more", without a language model."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from portal.domain.conversations import MessageStatus
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import switches
from tests.conftest import Portal
from tests.factories.answers import ask

LEAVE = """# Handbook

## Leave

Employees get 25 days of leave. Leave is booked with the manager. Unused days expire in March.

## Parking

Bay nine is reserved.
"""


@pytest.fixture
def portal(make_reading_services: Callable[..., Services]) -> Portal:
    portal = Portal.of(make_reading_services())
    portal.add(LEAVE, name="handbook.md")
    return portal


@pytest.fixture
def talk(portal: Portal) -> UUID:
    talk = conversations.create(portal.services, portal.admin).id
    assert "25 days" in ask(portal.services, portal.admin, talk, "How much leave?").content
    return talk


@pytest.mark.parametrize("remark", ["Tell me more", "more details please", "详细说说", "还有呢？"])
def test_more_is_the_section_of_the_the_last_quotation(portal: Portal, talk: UUID, remark: str):
    answer = ask(portal.services, portal.admin, talk, remark)
    assert "Unused days expire in March" in answer.content
    quoted = [one.excerpt for one in answer.citations if one.was_cited]
    assert any("booked with the manager" in one for one in quoted)
    assert "Bay nine" not in answer.content
    again = ask(portal.services, portal.admin, talk, remark)
    assert again.content.startswith(("That section says no more.", "那一节没有更多内容了。"))
    assert not [one for one in again.citations if one.was_cited]


def test_there_is_no_more_without_a_quotation(portal: Portal):
    empty = conversations.create(portal.services, portal.admin).id
    answer = ask(portal.services, portal.admin, empty, "Tell me more")
    assert answer.status is MessageStatus.ABSTAINED
    assert "quotes nothing" in answer.content
    assert not answer.citations


def test_passage_of_a_document_that_was_switched_off_is_not_shown(portal: Portal, talk: UUID):
    portal.add("Vets are on call at night.", name="on-call.md")
    [handbook] = {
        one.document_id
        for message in conversations.messages(portal.services, portal.admin, talk)
        for one in message.citations
    }
    switches.set_switch(portal.services, portal.admin, talk, handbook, enabled=False)
    answer = ask(portal.services, portal.admin, talk, "Tell me more")
    assert "expire in March" not in answer.content


@pytest.mark.parametrize(
    ("remark", "said"),
    [
        ("Are you sure?", "word for word"),
        ("确定吗？", "原文"),
        ("Shorter please", "language model"),
        ("Can you explain that?", "language model"),
        ("能举个例子吗？", "语言模型"),
    ],
)
def test_doubts_and_wishes_are_replied_to(portal: Portal, talk: UUID, remark: str, said: str):
    answer = ask(portal.services, portal.admin, talk, remark)
    assert said in answer.content
    assert not [one for one in answer.citations if one.was_cited]


@pytest.mark.parametrize("question", ["Tell me more about parking", "Explain the parking rules"])
def test_remark_with_a_subject_is_a_question(portal: Portal, talk: UUID, question: str):
    assert "Bay nine" in ask(portal.services, portal.admin, talk, question).content


def test_why_is_answered_by_a_reason_only(portal: Portal):
    portal.add(
        "# Backups\n\nThe Downloads folder is not backed up. Work is backed up every night.\n\n"
        "# Releases\n\nThe release is postponed. It is postponed because the tests failed.\n",
        name="it.md",
    )
    talk = conversations.create(portal.services, portal.admin).id
    first = ask(portal.services, portal.admin, talk, "Is the Downloads folder backed up?")
    assert "is not backed up" in first.content
    assert "do not say" in ask(portal.services, portal.admin, talk, "Why not?").content
    ask(portal.services, portal.admin, talk, "Is the release postponed?")
    assert "the tests failed" in ask(portal.services, portal.admin, talk, "Why?").content
