"""A follow-up is searched with the words that it leaves out."""

from __future__ import annotations

import pytest

from portal.answering.follow_up import asked_alone, rewritten, search_query
from portal.domain.answering import Heartbeat, Turn
from portal.errors import ChatUnavailable
from portal.text.counting.token_bound import token_bound
from portal.text.terms.analyser import analyse_in
from tests.factories.scripted_chat import ScriptedChatModel


def turns(*questions):
    return [
        turn for one in questions for turn in (Turn("user", one), Turn("assistant", "Because."))
    ]


@pytest.mark.parametrize(
    ("before", "question", "carried"),
    [
        ("What is the population of France?", "And its capital?", "France"),
        ("How many vacation days do employees get?", "How do I apply for them?", "vacation"),
        ("法国有多少人口？", "它的首都在哪里？", "法国"),
        ("年假怎么申请？", "为什么？", "年假"),
        ("试用期多长？", "打几折？", "试用期"),
    ],
)
def test_subject_that_a_question_refers_back_to_is_added(before, question, carried):
    query = search_query(turns(before), question)
    assert carried in query
    assert query.endswith(question)


@pytest.mark.parametrize(
    ("before", "question", "query"),
    [
        ("法国有多少人口？", "德国呢？", "德国有多少人口？"),
        ("工龄五年有几天年假？", "十年呢", "工龄十年有几天年假？"),
        ("A区的仓库在哪里？", "那B区呢？", "B区的仓库在哪里？"),
        ("满五年的员工有几天年假？", "那满十年呢？", "满十年的员工有几天年假？"),
        ("谁负责支付回调", "文档呢", "谁负责文档"),
        ("经理出差坐什么座位？", "普通员工呢", "普通员工出差坐什么座位？"),
        ("What does the Team plan cost?", "And the Enterprise plan?",
         "What does the Enterprise plan cost?"),
        ("How much is a hotel in London?", "and in Paris?", "How much is a hotel in Paris?"),
        ("When is the office open on Mondays?", "what about the warehouse?",
         "When is the warehouse open on Mondays?"),
        ("Is alcohol reimbursed?", "And coffee?", "Is coffee reimbursed?"),
        ("What was the revenue in Q1?", "And Q2?", "What was the revenue in Q2?"),
        ("What does the red light mean?", "and amber?", "What does amber mean?"),
        ("How long is the probation period?", "No, I meant the notice period.",
         "How long is the notice period?"),
        ("How much does a hotel cost?", "And a flight?", "How much does a flight cost?"),
        ("How much do hotels cost?", "And flights?", "How much do flights cost?"),
        ("Do interns get a bonus?", "And contractors?", "Do contractors get a bonus?"),
        ("How far is it from Berlin to Munich?", "And to Hamburg?",
         "How far is it from Berlin to Hamburg?"),
        ("How much is the parking fee per hour?", "And per day?",
         "How much is the parking fee per day?"),
        ("How many people fit in room Kade?", "And room Lund?",
         "How many people fit in room Lund?"),
        ("What changed in version 2.1?", "And version 2.2?", "What changed in version 2.2?"),
        ("Which version supports Python 3.12?", "And 3.13?",
         "Which version supports Python 3.13?"),
        ("QJ-L20 多少钱？", "那 L10 呢？", "QJ-L10 多少钱？"),
        ("How long is the warranty of the X200?", "And the X300?",
         "How long is the warranty of the X300?"),
        ("員工的年假有幾天？", "那麼經理呢？", "經理的年假有幾天？"),
        ("員工的年假有幾天？", "還有經理呢？", "經理的年假有幾天？"),
        ("員工的年假有幾天？", "換成經理呢？", "經理的年假有幾天？"),
        ("員工的年假有幾天？", "然後經理呢？", "經理的年假有幾天？"),
        ("员工的年假有几天？", "然后经理呢？", "经理的年假有几天？"),
        ("年假有几天？", "不是，我是问病假", "病假有几天？"),
        ("年假有几天？", "不对，我是问年假怎么申请", "年假怎么申请"),
        ("年假有多少天？", "实习生呢？", "实习生年假有多少天？"),
        ("陪产假几天", "产假呢", "产假几天"),
        ("副总经理是谁", "总经理呢", "总经理是谁"),
        ("周五吃什么", "汤呢？", "汤周五吃什么"),
        ("谁参加了九月的会议", "10月的呢", "谁参加了10月的会议"),
        ("How much can a hotel in Paris cost?", "and in Rome?",
         "How much can a hotel in Rome cost?"),
        ("How much can a hotel in Paris cost?", "and in 2025?",
         "in 2025 How much can a hotel in Paris cost?"),
        ("What does shipping to Germany up to 5 kg cost?", "and up to 30 kg?",
         "What does shipping to Germany up to 30 kg cost?"),
        ("What does spaying a cat cost?", "and a rabbit?", "What does spaying a rabbit cost?"),
        ("What does spaying a cat cost?", "what about a big dog?",
         "What does spaying a big dog cost?"),
        ("Which laptop do designers get?", "and interns?", "Which laptop do interns get?"),
        ("How much may a project engineer spend on a hotel?", "and a working student?",
         "How much may a working student spend on a hotel?"),
        ("工程师在一类城市的住宿标准是多少？", "那实习生呢", "实习生在一类城市的住宿标准是多少？"),
        ("成都的年假有几天？", "汉堡办公室呢", "汉堡办公室的年假有几天？"),
        ("What does parking cost on a Sunday?", "and windows on Saturdays?",
         "What does windows cost on Saturdays?"),
        ("报销多久之内要交，钱什么时候打到账上？", "我是问总监的伙食补助", "总监的伙食补助"),
        ("How many days off for moving house?", "no, for business reasons",
         "How many days off for business reasons?"),
    ],
)  # fmt: skip
def test_new_subject_replaces_that_of_the_previous_question(before, question, query):
    assert search_query(turns(before), question) == query


ROW = "In your documents:\n\n> | Task | Owner |\n> | --- | --- |\n> | Guide | Tom Reed |\n>\n> [1]"
ZH_ROW = "> | 负责人 | 分机 |\n> | --- | --- |\n> | 王强 | 8105 |\n>\n> [1]"


@pytest.mark.parametrize(
    ("before", "answer", "question", "query"),
    [
        ("潘仕成的祖籍在哪里？", "> 广东番禺。 [1]", "他有几个儿子？", "潘仕成有几个儿子？"),
        ("潘仕成的祖籍在哪裡？", "> 廣東番禺。 [1]", "那個時候他多大？", "那個時候潘仕成多大？"),
        ("谁负责备份？", "> 王强负责备份。 [1]", "他还负责什么？", "王强还负责什么？"),
        ("谁负责备份？", ZH_ROW, "他的分机呢？", "王强的分机呢？"),
        ("Who writes the guide?", ROW, "When did he join?", "When did Tom Reed join?"),
        ("Who writes the guide?", ROW, "What is his extension?", "What is Tom Reed's extension?"),
        ("Who leads it?", "> Ann Berg leads the team. [1]", "How do I call her?",
         "How do I call Ann Berg?"),
    ],
)  # fmt: skip
def test_a_pronoun_stands_for_the_person_in_the_question_before_or_its_answer(
    before, answer, question, query
):
    asked = [Turn("user", before), Turn("assistant", answer)]
    assert search_query(asked, question) == query


@pytest.mark.parametrize(
    "question", ["Can an employee choose her laptop?", "新人可以自己选他的电脑吗？"]
)
def test_a_pronoun_stands_for_a_person_in_its_own_question(question):
    assert (
        search_query([Turn("user", "Who writes the guide?"), Turn("assistant", ROW)], question)
        == question
    )


def test_question_about_a_column_is_about_the_row_just_quoted():
    rows = ["| 事项 | 负责人 | 截止日期 |", "| --- | --- | --- |", "| 写公告 | 赵敏 | 4月10日 |"]
    answer = "\n".join([*(f"> {row}" for row in rows), ">", "> [1]"])
    before = [Turn("user", "谁负责写公告？"), Turn("assistant", answer)]
    assert "公告" in search_query(before, "截止日期是哪天？")
    for alone in ("年会的截止日期是哪天？", "报名日期是哪天？"):
        assert search_query(before, alone) == alone
    of_two = answer.replace("> | 写公告", "> | 发公告 | 李泽 | 4月12日 |\n> | 写公告")
    before = [before[0], Turn("assistant", of_two)]
    assert search_query(before, "截止日期是哪天？") == "截止日期是哪天？"


def test_a_pronoun_stands_for_no_one_of_several_people():
    answer = "> Ann Berg and Tom Reed lead the team. [1]"
    asked = [Turn("user", "Who leads the team?"), Turn("assistant", answer)]
    assert search_query(asked, "When did she join?") == "leads team When did she join?"


def test_new_subject_is_added_if_it_is_unclear_what_it_replaces():
    before = "How much can I spend on a hotel in London?"
    assert search_query(turns(before), "And meals?") == f"meals {before}"
    assert search_query(turns(before), "And elsewhere?") == f"elsewhere {before}"
    assert search_query(turns("会议在哪里开的？"), "下次呢？") == "下次会议在哪里开的？"
    assert search_query(turns("住宿标准是多少？"), "经理呢？") == "经理住宿标准是多少？"
    query = search_query(turns("年假有几天？"), "不是，我问的是汉堡办公室")
    assert query == "汉堡办公室年假有几天？"


@pytest.mark.parametrize(
    ("before", "question", "added"),
    [
        ("How long is the notice period?", "And for interns?", "for interns"),
        ("Where is the office?", "And in Paris?", "in Paris"),
        ("How do I reset my password?", "Or by email?", "by email"),
        ("Is the canteen open on Friday?", "And without a badge?", "without a badge"),
        ("Is the canteen open on Friday?", "And tomorrow?", "tomorrow"),
        ("What does the Team plan cost?", "And Enterprise?", "Enterprise"),
        ("Does the plan include support?", "And training?", "training"),
        (
            "How many days may I work from home?",
            "no, I meant the Chengdu office.",
            "the Chengdu office",
        ),
        ("What is Anna Berg's phone number?", "And Tom's?", "Tom's"),
    ],
)
def test_subject_that_replaces_no_other_is_added(before, question, added):
    assert search_query(turns(before), question) == f"{added} {before}"


def test_similarity_decides_which_subject_is_replaced():
    def likeness(name, texts):
        assert (name, texts) == ("meals", ["hotel", "London"])
        return [0.86, 0.83]

    before = "How much can I spend on a hotel in London?"
    query = search_query(turns(before), "And for meals?", likeness)
    assert query == "How much can I spend on meals in London?"


@pytest.mark.parametrize(
    ("before", "question", "nearest", "query"),
    [
        ("When does the office in Berlin close?", "And Munich?", "Berlin",
         "When does the office in Munich close?"),
        ("打印机在几楼？", "会议室呢？", "楼", "会议室在几楼？"),
    ],
)  # fmt: skip
def test_verbs_and_question_words_are_not_subjects(before, question, nearest, query):
    def likeness(name, texts):
        return [0.9 if nearest in text else 0.8 for text in texts]

    assert search_query(turns(before), question, likeness) == query


def test_each_new_subject_replaces_the_one_before():
    asked = turns("上海住酒店能报多少钱？", "成都呢", "谢谢")
    assert search_query(asked, "那杭州呢？") == "杭州住酒店能报多少钱？"


@pytest.mark.parametrize(
    ("before", "question"),
    [
        ("Who founded the company?", "When did Luther publish his theses?"),
        ("How many days of annual leave do I get?", "Is there a canteen in the Berlin office?"),
        ("How much is a hotel in London?", "What is this year's training budget?"),
        ("年假有几天？", "他人能否代领工资条？"),
        ("What is pgvector?", "How is the HNSW index built in PostgreSQL?"),
        ("年假有几天？", "病假怎么申请？"),
        ("法国有多少人口？", "北京和它的郊区一共有多少人口？"),
        ("How far is it?", "How do I get to the casino, by bus?"),
        ("What is the code of the bicycles?", "Who is the CEO?"),
        ("自行车的密码是多少？", "总经理是谁？"),
        ("How do I book a room?", "Who is in charge of IT?"),
    ],
)
def test_question_that_stands_alone_is_unchanged(before, question):
    assert search_query(turns(before), question) == question


def test_first_question_is_unchanged():
    assert search_query([], "And its capital?") == "And its capital?"


def test_subject_lasts_over_several_questions():
    query = search_query(turns("介绍一下五月艾", "它分布在哪里？"), "可以吃吗？")
    assert "五月艾" in query


def test_query_stays_short():
    long = turns(*["How do the many different departments of the company apply for budget?"] * 9)
    assert len(search_query(long, "And why?")) < 200


BEFORE = turns("What is the population of France?")


def test_model_rewrites_a_follow_up():
    chat = ScriptedChatModel(["What is the capital", " of France?"])
    assert rewritten(chat, BEFORE, "And its capital?") == "What is the capital of France?"
    assert chat.requests[0].sources == ()
    assert chat.requests[0].turns[-1] == Turn("user", "And its capital?")


def test_history_shown_to_the_rewriting_model_is_bounded():
    long = [*turns("What is the population of France?")] * 2
    long = [Turn(one.role, one.content + " More [1]." * 2000) for one in long] + BEFORE
    chat = ScriptedChatModel(["What is the capital of France?"])
    rewritten(chat, long, "And its capital?")
    (request,) = chat.requests
    assert [turn.role for turn in request.turns] == ["user", "assistant", "user"]
    assert sum(token_bound(turn.content) for turn in request.turns) <= 1000


def test_model_is_not_asked_if_the_question_stands_alone():
    chat = ScriptedChatModel(["nonsense"])
    question = "How is the HNSW index built in PostgreSQL?"
    assert rewritten(chat, BEFORE, question) == question
    assert chat.requests == []


@pytest.mark.parametrize(
    "script",
    [[ChatUnavailable(reason="down")], [], ["word " * 500], ["a", ChatUnavailable(reason="down")]],
)
def test_rule_decides_when_the_model_fails(script):
    chat = ScriptedChatModel(script)
    query = rewritten(chat, BEFORE, "And its capital?")
    assert query == search_query(BEFORE, "And its capital?")


def test_rule_decides_when_the_model_is_late_and_its_stream_is_closed():
    chat = ScriptedChatModel([Heartbeat()] * 3 + ["late"])
    query = rewritten(chat, BEFORE, "And its capital?", timeout_s=0.0)
    assert query == search_query(BEFORE, "And its capital?")
    assert chat.closed == 1


@pytest.mark.parametrize(
    "question", ["没休完怎么办？", "超过了怎么办", "忘了申请怎么办？", "要提前几天订？"]
)
def test_question_without_a_subject_gets_the_previous_one(question):
    assert search_query(turns("年假有几天？"), question) == f"年假 {question}"


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("谁审批？", ""),
        ("怎么申请？", ""),
        ("Who approves?", ""),
        ("Who is responsible?", ""),
        ("哪里可以停车？", "哪里可以停车"),
        ("Where can I park?", "Where can I park"),
        ("谁审批出差？", "谁审批出差"),
        ("Who is responsible for IT?", "Who is responsible for IT"),
    ],
)
def test_verb_without_its_object_is_not_asked_alone(question, alone):
    assert asked_alone(question) == alone


def test_long_message_stands_alone():
    question = "And for " + "managers, " * 60
    assert search_query(turns("How long is the notice period?"), question) == question


@pytest.mark.parametrize("language", ["simple", "german"])
def test_question_words_are_not_carried_over_with_any_stemmer(language):
    analyse_in(language)
    try:
        query = search_query(
            turns("How many days of annual leave do employees get?"),
            "Please explain exactly what it does?",
        )
    finally:
        analyse_in("english")
    assert query.startswith("days annual leave employees get ")
