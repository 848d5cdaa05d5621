"""Answers without a language model, from upload to stored citations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from portal.domain.conversations import Message, MessageStatus
from portal.domain.search import SearchRequest
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import library
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories.answers import ask
from tests.factories.cases import for_each

HANDBOOK = """# 员工手册

## 年假

员工按工龄享有带薪年假，见下表。

| 工龄 | 年假天数 | 可结转 |
| --- | --- | --- |
| 1–3 年 | 10 天 | 3 天 |
| 3–5 年 | 15 天 | 5 天 |

病假须提交医院证明。

## 住宿

出差住宿凭发票报销，一线城市每晚不超过 600 元。报销单须在返回后十个工作日内提交。
"""


@pytest.fixture
def portal(make_reading_services: Callable[..., Services]) -> Portal:
    return Portal.of(make_reading_services())


@pytest.fixture
def handbook(portal: Portal) -> Portal:
    portal.add(HANDBOOK, name="handbook.md")
    return portal


def answer_to(portal: Portal, question: str) -> Message:
    talk = conversations.create(portal.services, portal.admin).id
    return ask(portal.services, portal.admin, talk, question)


def excerpts(answer: Message) -> list[str]:
    return [one.excerpt for one in answer.citations if one.was_cited]


def test_table_is_quoted_by_rows_with_its_header(handbook: Portal) -> None:
    answer = answer_to(handbook, "年假可结转几天？")
    assert answer.status is MessageStatus.DONE
    assert "| 工龄 | 年假天数 | 可结转 |" in answer.content
    assert "| 3–5 年 | 15 天 | 5 天 |" in answer.content
    assert answer.support == ()
    [quoted] = excerpts(answer)
    assert quoted.startswith("1–3 年")
    assert quoted.endswith("5 天")


def test_each_part_of_a_question_is_cited_separately(handbook: Portal) -> None:
    answer = answer_to(handbook, "年假有几天？住宿怎么报销？")
    table, hotel = [one for one in answer.citations if one.was_cited]
    assert table.chunk_id == hotel.chunk_id
    assert "10 天" in table.excerpt
    assert "600 元" in hotel.excerpt
    assert "病假" not in table.excerpt + hotel.excerpt
    for one in (table, hotel):
        assert one.quote_sha256 == hashlib.sha256(one.excerpt.encode()).hexdigest()


def test_part_without_an_answer_is_named(handbook: Portal) -> None:
    answer = answer_to(handbook, "年假有几天？年假由谁审批？")
    assert "15 天" in answer.content
    assert "文档中没有写明：年假由谁审批" in answer.content


@for_each("question", ["年假由谁审批？", "报销款由谁发放？", "病假工资怎么算？"])
def test_subject_found_without_the_asked_detail_is_reported(
    handbook: Portal, question: str
) -> None:
    answer = answer_to(handbook, question)
    assert answer.status is MessageStatus.ABSTAINED
    assert "没有写明所问的内容" in answer.content
    assert excerpts(answer) == []


@for_each("message", ["你好", "谢谢！", "把员工手册翻译成英文", "12*7+3 等于多少？"])
def test_message_that_is_not_a_question_is_replied_to_without_a_search(
    handbook: Portal, message: str
) -> None:
    answer = answer_to(handbook, message)
    assert answer.status is MessageStatus.ABSTAINED
    assert answer.citations == ()
    assert "没有找到" not in answer.content


def test_number_in_the_question_selects_the_row_of_its_range(handbook: Portal) -> None:
    answer = answer_to(handbook, "工龄 4 年的员工年假有几天？")
    assert "| 3–5 年 | 15 天 | 5 天 |" in answer.content
    assert "1–3 年" not in answer.content


def test_quoted_answer_states_no_confidence_in_erased_words(
    portal: Portal, client: FlaskClient
) -> None:
    document = portal.add(HANDBOOK, name="handbook.md")
    answer = answer_to(portal, "工龄 4 年的员工年假有几天？")

    def page() -> str:
        return client.get(f"/chat/{answer.conversation_id}", headers=portal.headers()).text

    assert 'data-outcome="quoted"' in page()
    assert 'data-testid="confidence"' in page()
    library.purge_document(portal.services, portal.admin, document.id)
    assert 'data-outcome="quoted"' in page()
    assert 'data-testid="confidence"' not in page()


def test_outcome_is_stored_with_the_answer(handbook: Portal) -> None:
    quoted = answer_to(handbook, "年假可结转几天？").replay
    assert quoted is not None
    assert quoted.extra["outcome"] == "quoted"
    assert 0 < quoted.extra["confidence"] <= 1
    nothing = answer_to(handbook, "谁写了红楼梦？")
    assert nothing.replay is not None
    assert nothing.replay.extra["outcome"] == "nothing"
    assert nothing.citations == ()


def test_other_language_is_listed_only_when_it_is_quoted(portal: Portal) -> None:
    for number in range(1, 16):
        portal.add(f"Room {number} of the library closes at {number} pm.", title=f"{number}")
    portal.add("试用期为三个月，期满前两周进行考核。", title="入职")
    english = answer_to(portal, "When does room 3 of the library close?")
    assert excerpts(english) == ["Room 3 of the library closes at 3 pm."]
    assert "入职" not in {one.title for one in english.citations}
    chinese = answer_to(portal, "How long is the probation period?")
    assert excerpts(chinese) == ["试用期为三个月，期满前两周进行考核。"]


def test_quotation_has_the_confidence_of_the_answer_not_of_the_search(portal: Portal) -> None:
    minutes = "# Minutes\n\n- The migration to PostgreSQL 18 is planned for 9 May; Tomas owns it."
    portal.add(minutes, name="minutes.md")
    [hit] = engine.search(portal.services, portal.admin, SearchRequest("迁移由谁负责？")).hits
    assert hit.low_confidence
    answer = answer_to(portal, "迁移由谁负责？")
    [quoted] = [one for one in answer.citations if one.was_cited]
    assert quoted.confidence == pytest.approx(answer.replay.extra["confidence"], abs=1e-3)
    assert not quoted.low_confidence


def test_documents_are_listed_and_outlined(handbook: Portal) -> None:
    assert "handbook" in answer_to(handbook, "有哪些文档？").content
    outline = answer_to(handbook, "总结一下员工手册")
    assert outline.status is MessageStatus.ABSTAINED
    assert "概括需要语言模型" in outline.content
    assert "出差住宿凭发票报销" in outline.content


def test_outline_names_its_document_and_others_that_match(portal: Portal) -> None:
    for place in ("Berlin", "Oslo", "Rome"):
        portal.add(f"# Rules\n\nThe {place} office opens at nine.", title=f"{place} *handbook*")
    portal.add("# Parking\n\nBay nine is reserved.", title="Parking handover")
    answer = answer_to(portal, "Summarise the handbook").content
    outline, _, others = answer.partition("These documents match as well.")
    [named] = re.findall(r"outline of “(\w+) \\\*handbook\\\*”", outline)
    assert f"The {named} office opens at nine." in outline
    listed = re.findall(r"^- (\w+) \\\*handbook\\\*$", others, re.MULTILINE)
    assert {named, *listed} == {"Berlin", "Oslo", "Rome"}
    assert (len(listed), answer.count("opens at nine")) == (2, 1)
    assert "Parking" not in answer
    alone = answer_to(portal, "总结一下 Oslo handbook").content
    assert "《Oslo" in alone
    assert "以下文档也符合" not in alone


def test_outline_cites_the_words_that_it_shows(portal: Portal) -> None:
    rows = "| Service | Days |\n|---|---|\n| Up to 2 years | 25 |\n| 3 to 5 years | 27 |\n"
    groups = "| Group | Notice |\n|---|---|\n| Vets | 3 months |\n| Nurses | 2 months |\n"
    portal.add(f"# Handbook\n\n## Holiday\n\n{rows}\n## Notice\n\n{groups}", name="staff-book.md")
    outline = answer_to(portal, "Summarise the staff book")
    assert excerpts(outline) == ["Up to 2 years | 25", "Vets | 3 months"]


def test_documents_to_compare_may_be_named_with_spaces_for_hyphens(portal: Portal) -> None:
    portal.add("Vets are on call at night.", name="on-call-rules.md")
    portal.add("Staff work 38 hours.", name="staff_handbook.md")
    for message in (
        "compare the on-call rules and the staff handbook",
        "What is the difference between the on call rules and the staff handbook?",
    ):
        assert "language model" in answer_to(portal, message).content


def test_short_titles_match_whole_words_only(handbook: Portal) -> None:
    handbook.add("The staff of HR sits on floor two.", name="HR.md")
    handbook.add("IT has the keys.", name="IT.md")
    question = "What is the difference between three units?"
    assert "language model" not in answer_to(handbook, question).content
    assert "language model" in answer_to(handbook, "Compare HR and IT").content


def test_document_is_outlined_by_its_first_heading(handbook: Portal) -> None:
    handbook.add("# 差旅规定\n\n出差须提前一周申请。\n", name="travel.md")
    handbook.add("# Fire drill\n\nLeave by the stairs.\n", name="2026-03.md")
    assert "提前一周申请" in answer_to(handbook, "总结一下差旅规定").content
    assert "by the stairs" in answer_to(handbook, "Summarise the fire drill").content
    assert "请写出文档标题" in answer_to(handbook, "总结一下采购合同").content


def test_comparison_of_documents_is_declined_and_other_comparisons_are_questions(
    handbook: Portal,
) -> None:
    handbook.add("Trips are booked a week ahead.", name="travel.md")
    assert "needs a language model" in answer_to(handbook, "Compare handbook and travel").content
    answer = answer_to(handbook, "比较一下不同工龄的年假天数")
    assert "语言模型" not in answer.content


def test_versions_of_a_document_are_compared_by_the_name_that_they_share(handbook: Portal) -> None:
    handbook.add("Trips are booked a week ahead.", name="Travel Policy 2025.md")
    handbook.add("Trips are booked two weeks ahead.", name="Travel Policy 2026.md")
    for question in (
        "compare last year's and this year's travel policy",
        "What is the difference between Travel Policy 2025 and Travel Policy 2026?",
        "differences between travel policy 2025 and 2026",
    ):
        assert "needs a language model" in answer_to(handbook, question).content, question
    answer = answer_to(handbook, "工龄3年和5年的年假有什么区别？")
    assert "语言模型" not in answer.content


def test_portal_without_documents_reports_it(portal: Portal) -> None:
    assert "还没有文档" in answer_to(portal, "年假有几天？").content


def test_question_of_when_quotes_only_the_sentence_about_its_subject(portal: Portal) -> None:
    portal.add("The quince trees are pruned in March. Roses wait until April.", name="garden.md")
    assert excerpts(answer_to(portal, "When are the quince trees pruned?")) == [
        "The quince trees are pruned in March."
    ]


def test_place_of_another_event_is_not_an_answer(portal: Portal) -> None:
    portal.add(
        "Nikola Tesla's biography was chosen for the book club. "
        "Tesla invented the induction motor and died in New York in 1943.",
        name="club.md",
    )
    assert excerpts(answer_to(portal, "Where was Tesla born?")) == []
    assert excerpts(answer_to(portal, "特斯拉是在哪里出生的？")) == []
    [died] = excerpts(answer_to(portal, "Where did Tesla die?"))
    assert "died in New York" in died


@pytest.mark.parametrize(
    "question",
    [
        "Who is the office manager, and what is her phone number?",
        "行政是谁，她的电话是多少？",
    ],
)
def test_pronoun_in_a_further_part_stands_for_the_person_of_the_first(
    portal: Portal, question: str
) -> None:
    portal.add(
        "# 紧急联系人 / Emergency contacts\n\n| 事项 | 联系人 | 电话 |\n|---|---|---|\n"
        "| 火警 | 消防 | 119 |\n| 物业 / Building management | 吴师傅 Mr Wu | 021-6350-1188 |\n"
        "| 行政 / Office manager | 王敏 Wang Min | 139-1700-2031 |\n"
        "| 急救员 / First aider | 孙丽 Sun Li | 136-0178-4420 |\n",
        name="contacts.md",
    )
    answer = answer_to(portal, question).content
    assert "139-1700-2031" in answer
    assert "136-0178-4420" not in answer
    assert "119" not in answer
