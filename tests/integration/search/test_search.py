"""Search finds the right chunks, in both languages, and only those that the user may see."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.search import SearchHit, SearchMode, SearchRequest, Weights
from portal.services.documents import library
from portal.services.search import engine, finding
from tests.conftest import Portal
from tests.factories.cases import for_each

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
OFFICE = "The office closes at six. Visitors must sign in at the front desk."


def titles(hits: tuple[SearchHit, ...]) -> list[str]:
    return [hit.title for hit in hits]


def ask(portal: Portal, query: str, user=None, **wishes) -> tuple[SearchHit, ...]:
    request = SearchRequest(query=query, **wishes)
    return engine.search(portal.services, user or portal.admin, request).hits


@pytest.fixture
def library_of_two(portal: Portal) -> Portal:
    portal.add(LEAVE, name="年假规定.txt")
    portal.add(OFFICE, name="handbook.md")
    return portal


def test_chinese_words_find_their_document_first(library_of_two: Portal) -> None:
    hit = ask(library_of_two, "年假有几天")[0]
    assert hit.title == "年假规定"
    assert hit.source is SearchMode.HYBRID
    marked = [hit.excerpt[span.start : span.end] for span in hit.highlights]
    assert "年假" in "".join(marked)


def test_english_words_find_their_document_first(library_of_two: Portal) -> None:
    assert ask(library_of_two, "When does the office close?")[0].title == "handbook"


def test_translated_words_add_to_the_score_in_the_other_language(portal: Portal) -> None:
    portal.add("The deposit for the warehouse is two months of rent.", name="lease.md")
    portal.add("Cats purr when they are content.", name="cats.md")
    portal.add("仓库押金由财务保管。", name="规定.md")
    hits = {one.title: one for one in ask(portal, "仓库押金多少", explain=True)}
    added = {title: one.parts.proximity for title, one in hits.items()}
    assert added["lease"] > added["cats"] == 0
    assert hits["规定"].score <= 1


def test_translated_words_make_a_result_in_the_other_language_more_certain(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add("The deposit for the warehouse is two months of rent.", name="lease.md")
    (known,) = ask(portal, "仓库押金多少")
    monkeypatch.setattr(finding, "translations", lambda terms: [() for _ in terms])
    (unknown,) = ask(portal, "仓库押金多少 ")
    assert known.confidence > unknown.confidence


def test_numbers_that_stand_together_add_to_the_score(portal: Portal) -> None:
    between = "The canteen opens at noon and closes when the last guest has left. " * 4
    portal.add("Reports are filed under 4711 0815 in the archive.", name="together.md")
    portal.add(f"Room 4711 is upstairs. {between}Room 0815 is downstairs.", name="apart.md")
    hits = {one.title: one for one in ask(portal, "4711 0815", explain=True)}
    assert hits["together"].parts.proximity > hits["apart"].parts.proximity


def test_private_document_never_ranks_for_another_user(portal: Portal) -> None:
    owner, other = portal.user("owner"), portal.user("other")
    portal.add(LEAVE, owner=owner, visibility=Visibility.PRIVATE)
    for mode in SearchMode:
        assert ask(portal, "年假", owner, mode=mode)
        assert not ask(portal, "年假", other, mode=mode)


def test_deleted_document_is_gone_at_once_and_back_when_restored(library_of_two: Portal) -> None:
    portal = library_of_two
    found = ask(portal, "年假")[0]
    library.delete_document(portal.services, portal.admin, found.document_id)
    for mode in SearchMode:
        assert "年假规定" not in titles(ask(portal, "年假", mode=mode))
    library.restore_document(portal.services, portal.admin, found.document_id)
    assert ask(portal, "年假")[0].document_id == found.document_id


@pytest.mark.parametrize("table", ["user_document_defaults", "conversation_document_overrides"])
def test_switched_off_document_is_not_searched(library_of_two: Portal, table: str) -> None:
    portal = library_of_two
    found = ask(portal, "年假")[0]
    with portal.services.database.begin() as session:
        conversation = session.scalar(
            text("INSERT INTO conversations (user_id) VALUES (:u) RETURNING id"),
            {"u": portal.admin.id},
        )
        column, owner = {
            "user_document_defaults": ("user_id", portal.admin.id),
            "conversation_document_overrides": ("conversation_id", conversation),
        }[table]
        session.execute(
            text(f"INSERT INTO {table} ({column}, document_id, enabled) VALUES (:o, :d, false)"),
            {"o": owner, "d": found.document_id},
        )
    inside = ask(portal, "年假", conversation_id=conversation)
    assert "年假规定" not in titles(inside)
    outside = ask(portal, "年假")
    assert ("年假规定" in titles(outside)) is (table == "conversation_document_overrides")


def test_selection_stands_before_the_limit(portal: Portal) -> None:
    """Sixty better but invisible matches must not crowd out the visible one."""
    owner, other = portal.user("owner"), portal.user("other")
    for number in range(60):
        portal.add(f"年假 年假 年假 第{number}条", owner=owner, visibility=Visibility.PRIVATE)
    portal.add("公司制度里也写到了年假，还有许多别的事情。", name="seen.txt", owner=other)
    for mode in SearchMode:
        assert titles(ask(portal, "年假", other, mode=mode, top_n=1)) == ["seen"]


def test_weights_decide_which_leg_orders(portal: Portal) -> None:
    portal.add("apple banana cherry apple apple", name="fruit.txt")
    portal.add("apple", name="word.txt")
    by_words = ask(portal, "apple", weights=Weights(vector=0, text=1))
    by_meaning = ask(portal, "apple", weights=Weights(vector=1, text=0))
    assert [hit.score for hit in by_words] == [hit.parts.text for hit in by_words]
    assert by_meaning[0].vector_score == max(hit.vector_score or 0 for hit in by_meaning)


def test_same_query_gives_the_same_order_and_more_results_append(portal: Portal) -> None:
    for number in range(30):
        portal.add(f"meeting notes number {number} about the budget", name=f"n{number}.txt")
    first = [hit.chunk_id for hit in ask(portal, "budget meeting", top_n=10)]
    assert first == [hit.chunk_id for hit in ask(portal, "budget meeting", top_n=10)]
    assert first == [hit.chunk_id for hit in ask(portal, "budget meeting", top_n=20)][:10]


@for_each("query", ["？！。", "  \u3000 ", "\u200b", "的", "𠮷", "a" * 4096])
def test_query_without_words_is_not_an_error(library_of_two: Portal, query: str) -> None:
    for mode in SearchMode:
        ask(library_of_two, query, mode=mode)
