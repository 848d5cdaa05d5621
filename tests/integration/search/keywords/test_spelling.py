"""Spelling corrections come only from chunks that the user may see, in both languages."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.domain.search import Correction
from portal.services.documents import library as documents
from portal.services.search.corrections import spelling
from portal.store.search.word_counts import SearchableWords
from portal.text.terms import lexicon
from tests.conftest import Portal

LIBRARY = {
    "机器学习入门.txt": "机器学习是人工智能的一支。神经网络需要大量数据。"
    "血液循环是另一回事，还要多多练习。",
    "员工手册.txt": "员工每年有十五天带薪年假。报销流程请看附录，合同由法务保管。",
    "handbook.txt": "Machine learning needs training data. The Übersetzung of contracts is done "
    "by the legal department. Travel expenses are reimbursed within a fortnight.",
}


@pytest.fixture
def library(portal: Portal) -> Portal:
    for name, content in LIBRARY.items():
        portal.add(content, name=name)
    return portal


def correct(portal: Portal, question: str, user: User | None = None) -> Correction | None:
    """Correct a query with the index of words; check the result against reading all chunks."""
    with portal.services.database.begin() as session:
        listed = session.scalar(
            text("SELECT CAST(array_agg(current_job_id) AS text) FROM documents")
        )
        found, read = (
            spelling.correct(SearchableWords(session, user or portal.admin, None, jobs), question)
            for jobs in (None, listed)
        )
        assert found == read
        return found


def spelt(portal: Portal, question: str, user: User | None = None) -> str:
    correction = correct(portal, question, user)
    return correction.query if correction else question


CORRECTED = {
    "machne lerning": "machine learning",
    "What is mahcine learning?": "What is machine learning?",
    "Machine Laerning": "Machine Learning",
    "TRAVLE expences": "TRAVEL expenses",
    "reimbersed expenses": "reimbursed expenses",
    "übersetzng": "übersetzung",
    "Ubersetzunk": "Übersetzung",
    "depratment of contracts": "department of contracts",
    "机器血习": "机器学习",
    "什么是机器血习？": "什么是机器学习？",
    "機器血習是什麼": "機器學習是什麼",
    "神经网洛需要什么": "神经网络需要什么",
    "带薪年价有几天": "带薪年假有几天",
    "报消流程": "报销流程",
    "人工只能": "人工智能",
    "機器學習 machne": "機器學習 machine",
}
KEPT = [
    "machine learning",
    "What is the machine?",
    "contracts and trainings",
    "机器学习是什么？",
    "员工有几天年假",
    "機器學習",
    "量子力学",
    "zebra xylophone",
    "PO-4711 v0.8 abc123",
    "",
    "？！ 🎉",
    "learn",
    "血液",
]


def test_word_of_the_dictionary_is_not_taken_for_a_slip(library: Portal) -> None:
    library.add("Clean the sink on leave. 2021年版手册。", name="kitchen.txt")
    lexicon.load()
    assert spelt(library, "sick leave") == "sick leave"
    assert spelt(library, "sinck leave") == "sink leave"
    assert spelt(library, "人工只能") == "人工智能"
    library.execute("UPDATE documents SET deleted_at = now() WHERE title LIKE '员工%'")
    assert spelt(library, "年假几天") == "年假几天"


def test_misspelt_words_become_known_ones(library: Portal) -> None:
    assert {question: spelt(library, question) for question in CORRECTED} == CORRECTED


def test_known_and_unfamiliar_words_are_kept(library: Portal) -> None:
    assert {question: correct(library, question) for question in KEPT} == dict.fromkeys(KEPT)


def test_correction_says_what_it_replaced_and_what_to_look_for(library: Portal) -> None:
    correction = correct(library, "machne lerning, machne 机器血习")
    assert correction is not None
    assert correction.query == "machine learning, machine 机器学习"
    assert correction.terms == ("machin", "learn", "机器", "学习")
    assert correction.replaced[:2] == (("machne", "machine"), ("lerning", "learning"))
    assert not correction.is_applied


def test_without_pg_trgm_the_nearest_words_are_still_found(library: Portal) -> None:
    library.execute("DROP EXTENSION pg_trgm CASCADE")
    for question in ("machne lerning", "What is mahcine learning?", "机器血习", "报消流程"):
        assert spelt(library, question) == CORRECTED[question]


def test_words_of_foreign_documents_are_neither_known_nor_proposed(portal: Portal) -> None:
    owner, other = portal.user("owner"), portal.user("other")
    secret = "The zirconium reactor. 量子计算机的方案。"
    portal.add(secret, owner=owner, visibility=Visibility.PRIVATE)
    portal.add("The zirconia ring. 电子计算机的方案。", owner=other)
    assert spelt(portal, "zirconiun", owner) == "zirconium"
    assert spelt(portal, "zirconiun", other) == "zirconia"
    assert spelt(portal, "zirconium", other) == "zirconia"
    assert correct(portal, "reacter", other) is None
    assert spelt(portal, "reacter", owner) == "reactor"


def test_words_of_documents_switched_off_or_deleted_are_not_proposed(portal: Portal) -> None:
    summary = portal.add("The zirconium reactor.")
    assert spelt(portal, "zirconiun") == "zirconium"
    portal.execute(
        "INSERT INTO user_document_defaults VALUES (:u, :d, false)", u=portal.admin.id, d=summary.id
    )
    assert correct(portal, "zirconiun") is None
    portal.execute("DELETE FROM user_document_defaults")
    documents.delete_document(portal.services, portal.admin, summary.id)
    assert correct(portal, "zirconiun") is None


def test_erased_text_leaves_no_words_behind(portal: Portal) -> None:
    kept = portal.add("The reactor.", name="kept.txt")
    erased = portal.add("The zirconium reactor.", name="erased.txt")
    assert {"zirconium", "reactor"} <= words(portal)
    documents.delete_document(portal.services, portal.admin, erased.id)
    documents.purge_document(portal.services, portal.admin, erased.id)
    assert "zirconium" not in words(portal)
    assert "reactor" in words(portal)
    assert kept.chunk_count == 1


def words(portal: Portal) -> set[str]:
    return set(portal.scalars("SELECT word FROM vocabulary"))


def test_another_form_of_a_known_word_is_not_taken_from_documents_of_others(portal: Portal) -> None:
    alice, bob = portal.user("alice"), portal.user("bob")
    portal.add("Relocation and dismissal.", owner=alice, visibility=Visibility.PRIVATE)
    portal.add("Relocated dismissals.", name="b.txt", owner=bob, visibility=Visibility.PRIVATE)
    for typed, own, foreign in (
        ("relocatoin", "relocation", "relocated"),
        ("dismisals", "dismissal", "dismissals"),
    ):
        found = correct(portal, typed, alice)
        assert found is None or foreign not in found.query
        found = correct(portal, typed, bob)
        assert found is None or found.query != own
