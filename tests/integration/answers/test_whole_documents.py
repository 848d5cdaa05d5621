"""Summaries and comparisons: a language model reads whole documents, part by part."""

from __future__ import annotations

import re
from collections.abc import Iterable

from portal.domain.answering import ChatEvent, ChatRequest
from portal.domain.conversations import Message, MessageStatus
from portal.domain.documents import Visibility
from portal.errors import N_, ChatUnavailable
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.answers import ask, asked, saying

LONG = "\n\n".join(
    f"## Rule {number}\n\nRule {number} concerns the lighthouse. "
    + f"Its keepers write report {number} every evening before sunset. " * 12
    for number in range(1, 13)
)
SHORT = "The ferry leaves at noon. It carries forty passengers."


def answer_to(portal: Portal, services: Services, question: str) -> Message:
    talk = conversations.create(services, portal.admin).id
    return ask(services, portal.admin, talk, question)


def notes_or_answer(request: ChatRequest) -> Iterable[ChatEvent | Exception | str]:
    """Cite the first passage of each part, then every number in the notes."""
    numbers = re.findall(r"\[(\d+)\]", request.system.split("\n\n", 1)[1])
    if "notes on each part" in request.system:
        return [f"Keepers write reports [{number}]. " for number in dict.fromkeys(numbers)]
    return [f"It says so [{numbers[0]}]."]


def test_long_document_is_summarised_from_notes_on_every_part(portal: Portal) -> None:
    portal.add(LONG, name="lighthouse.md")
    services = saying(portal.services, notes_or_answer)
    answer = answer_to(portal, services, "Summarize lighthouse")
    assert answer.status is MessageStatus.DONE
    *parts, last = asked(services)
    assert len(parts) > 1
    read = [source.number for part in parts for source in part.sources]
    assert read == [source.number for source in last.sources] == list(range(1, len(read) + 1))
    assert all("Summarize lighthouse" in part.turns[-1].content for part in parts)
    assert len([one for one in answer.citations if one.was_cited]) == len(parts)


def test_short_document_is_read_at_once(portal: Portal) -> None:
    portal.add(SHORT, name="ferry.md")
    services = saying(portal.services, "A ferry with forty passengers [1].")
    assert answer_to(portal, services, "总结一下 ferry").content == (
        "A ferry with forty passengers [1]."
    )
    [request] = asked(services)
    assert "It carries forty passengers." in request.system


def test_two_documents_are_compared_by_all_of_their_text(portal: Portal) -> None:
    portal.add(SHORT, name="ferry.md")
    portal.add("The train leaves at one. It carries ninety passengers.", name="train.md")
    portal.add("Bread is baked at dawn.", name="bakery.md")
    services = saying(portal.services, "Forty [1] and ninety [2].")
    answer_to(portal, services, "Compare ferry and train")
    [request] = asked(services)
    assert {source.title for source in request.sources} == {"ferry", "train"}


def test_private_document_of_another_user_is_not_read(portal: Portal) -> None:
    portal.add(SHORT, name="ferry.md")
    hidden = portal.add(LONG, name="lighthouse.md", visibility=Visibility.PRIVATE)
    reader = portal.user("reader")
    services = saying(portal.services, "Nothing is known.")
    talk = conversations.create(services, reader).id
    ask(services, reader, talk, "Summarize lighthouse")
    assert all(
        source.document_id != hidden.id for request in asked(services) for source in request.sources
    )


def test_notes_on_a_document_that_was_withdrawn_are_not_used(portal: Portal) -> None:
    withdrawn = portal.add(LONG, name="lighthouse.md")
    reader = portal.user("reader")

    def note(request: ChatRequest) -> Iterable[str]:
        if len(asked(services)) == 2:
            library.change_document(
                services, portal.admin, withdrawn.id, visibility=Visibility.PRIVATE
            )
        return [f"Note {len(asked(services))} of the keepers."]

    services = saying(portal.services, note)
    talk = conversations.create(services, reader).id
    ask(services, reader, talk, "Summarize lighthouse")
    assert len(asked(services)) > 2
    assert "of the keepers" not in asked(services)[-1].system


def test_outline_is_shown_where_the_model_fails_on_a_part(portal: Portal) -> None:
    portal.add(LONG, name="lighthouse.md")
    failure = ChatUnavailable(reason=N_("its endpoint wrote nothing"))
    services = saying(portal.services, "It says so [1].", [failure])
    answer = answer_to(portal, services, "Summarize lighthouse")
    assert answer.status is MessageStatus.UNAVAILABLE
    assert "Rule 1 concerns the lighthouse." in answer.content


def test_long_document_read_in_part_says_how_much_was_read(portal: Portal) -> None:
    chapters = "\n\n".join(f"## Rule {n}\n\n" + "Keepers write reports. " * 60 for n in range(80))
    portal.add(chapters, name="lighthouse.md")
    answer = answer_to(portal, saying(portal.services, "It says so [1]."), "Summarize lighthouse")
    assert answer.replay
    assert answer.replay.degraded == ("partly_read",)
    read, total = answer.replay.extra["read_of"]
    assert read == 60 < total


def test_outline_of_a_long_document_says_how_much_it_covers(portal: Portal) -> None:
    rules = (
        f"## Rule {n}\n\nRule {n} concerns the lighthouse. " + "Well. " * 150 for n in range(30)
    )
    portal.add("\n\n".join(rules), name="lighthouse.md")
    answer = answer_to(portal, portal.services, "Summarize lighthouse")
    assert answer.replay
    read, total = answer.replay.extra["read_of"]
    assert read < total
    last = max(int(number) for number in re.findall(r"Rule (\d+) concerns", answer.content))
    cited = [one for one in answer.citations if one.was_cited]
    assert len(cited) == last + 1 < 30


def test_outline_in_place_of_a_failed_model_does_not_say_that_there_is_none(
    portal: Portal,
) -> None:
    portal.add(LONG, name="lighthouse.md")
    services = saying(portal.services, [ChatUnavailable(reason="it is down")])
    answer = answer_to(portal, services, "Summarize lighthouse")
    assert "Summarising takes a language model" in answer.content
    assert "only quotes" not in answer.content
