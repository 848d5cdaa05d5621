"""Messages that get a reply without a search, and questions that look like them."""

from __future__ import annotations

import pytest

from eval.answers.sets import SHIPPED
from eval.sets import read_rows
from portal.answering.arithmetic import compute
from portal.answering.replies import Task, understand

MESSAGES = {
    Task.GREETING: [
        "您好！",
        "在吗？",
        "哈喽",
        "hi, how's it going?",
        "Hello there, nice to meet you",
        "嘿",
        "下午好！",
        "晚安",
        "hey portal",
        "Good evening!",
        "hi bot",
        "你好，很高兴认识你",
        "what's up?",
        "how's it going",
        "Hello, is anyone there?",
        "嗨，你好",
        "hello 你好",
        "有人吗？",
        "初次见面",
        "Hi, good morning!",
        "大家早上好",
        "新年好",
        "早上好呀",
    ],
    Task.THANKS: [
        "太感谢了",
        "谢谢你的帮助！",
        "thank you!",
        "Thanks, bye",
        "cool, thanks",
        "perfect, thank you very much",
        "谢啦",
        "多谢多谢",
        "好的，谢谢",
        "appreciate it",
        "thank you so much for your help",
        "明白了，谢谢",
        "非常有帮助，谢谢",
        "谢谢，再见",
        "好的，拜拜",
        "Cheers mate",
        "thx!",
        "That's all, thanks",
        "没有别的问题了，谢谢",
        "that was helpful",
        "ok thanks a lot",
        "辛苦啦",
        "谢谢，帮大忙了",
        "Thanks a lot, that helped",
        "thank you very much",
    ],
    Task.FAREWELL: ["拜拜", "再见！", "bye", "Goodbye!", "see you tomorrow", "hey, bye"],
    Task.COMPLAINT: [
        "you are useless",
        "That's not what I asked.",
        "this is wrong",
        "你答错了",
        "说错了",
        "你真没用",
        "答非所问",
        "这个回答不对",
        "You didn't answer my question",
    ],
    Task.ABOUT: [
        "你好，你能做什么？",
        "Hi, what can you do?",
        "你是什么？",
        "你是AI吗",
        "你是 ChatGPT 吗",
        "你是哪个模型",
        "Who made you?",
        "are you a real person",
        "what's your name?",
        "how do you work?",
        "What are you able to do?",
        "你可以回答什么问题",
        "你会做什么",
        "我能问你什么？",
        "怎么用",
        "how do i use this?",
        "what is this?",
        "what kind of questions can I ask?",
        "你背后用的是什么模型",
        "do you use chatgpt?",
        "tell me about yourself",
        "你能帮我什么",
        "这个系统能干嘛",
        "what can I ask you?",
        "你是人还是机器",
        "Which model are you?",
        "Are you a person?",
        "你能回答哪些问题？",
        "你叫什么",
        "你怎么工作的？",
        "介绍一下你自己吧",
        "What do you do?",
        "你是谁开发的？",
        "你有什么用",
        "Can you help me?",
        "你是谁呀？",
        "What can you do?",
        "这个系统怎么用",
        "how can you help me",
        "how can you help?",
        "What's this website?",
        "can I ask you anything?",
        "can you answer in Chinese?",
        "Do you speak Chinese?",
        "what languages do you speak",
        "do you understand Chinese?",
        "where do your answers come from?",
        "Where do you get your answers from?",
        "Can I trust your answers?",
        "Do you make things up?",
        "what should I ask?",
        "tell me what you can do",
        "what are your capabilities",
        "What features do you have?",
        "这是什么系统？",
        "这是什么",
        "这是做什么用的？",
        "你是哪家公司开发的",
        "你会说英文吗？",
        "你支持英文吗",
        "你的答案从哪里来",
        "你的回答可靠吗",
        "你会编造答案吗",
        "你都懂些什么",
        "你知道些什么",
        "能帮我做些什么",
        "你好，请问你能做什么？",
    ],
    Task.LIST_DOCUMENTS: [
        "有什么文档",
        "你能看到哪些文件？",
        "我上传了哪些文档",
        "都有哪些资料可以查",
        "列一下文档",
        "which files can you access?",
        "What's in here?",
        "list all the documents",
        "What documents have been uploaded?",
        "how many documents are there?",
        "知识库里有什么",
        "what files do you have access to",
        "what docs are in here?",
        "现在有多少份文档？",
        "给我看看文档列表",
        "你知道哪些文档",
        "Show all files",
        "What do you have on file?",
        "门户里有哪些文档？",
        "这些文档讲了什么？",
        "What are these documents about?",
        "Which documents can I ask about?",
        "一共上传了几个文件",
        "目前可以查询哪些文件？",
        "what documents can I search?",
        "这里面都有哪些文档？",
        "What do you know about?",
        "what's in your library",
        "What can I search here?",
        "你手头有哪些文件？",
        "你手上有什么文档",
        "What have you got?",
        "Which documents are available to me?",
        "Give me a list of documents",
        "give me the list of all files",
    ],
    Task.ARITHMETIC: [
        "3+5",
        "15% of 240",
        "What's 12 * 7?",
        "(12+8)*3等于几",
        "100除以8",
        "1234 加 5678 等于多少？",
        "how much is 18 percent of 250",
        "25乘4",
        "88 乘 12 得多少？",
        "240 的 15% 是多少",
        "365 乘以 24 是多少",
        "What is 144 divided by 12?",
        "12x12",
        "3.5*4=?",
        "计算 45*12",
        "1,200 / 4",
        "请算一下 99+1",
        "帮我算下 17*23",
        "How much is 7 times 8?",
        "what does 9 plus 10 equal?",
        "100减去37",
        "18 乘 25 等于几？",
        "What does 19 * 21 make?",
        "work out 18% of 650",
        "365天乘以24小时",
        "12个月*3000",
        "2400元的15%是多少",
        "$3,000 * 12",
        "请帮我算一下 3500 的 8% 是多少",
        "100加200再减50等于几",
        "100元减30元",
        "€45 times 3",
    ],
    Task.OUTLINE: [
        "总结一下员工手册",
    ],
    Task.WRITING: [
        "Translate the guide into French",
    ],
    Task.NOW: [
        "what time is it?",
        "What's today's date?",
        "what is the weather like today",
        "will it rain tomorrow?",
        "今天星期几",
        "现在几点了？",
        "今天天气怎么样",
    ],
}
QUESTIONS = [
    "说错了工号怎么办",
    "编译器版本",
    "翻译费用标准",
    "缩写表",
    "team portal",
    "Is this right?",
    "what is wrong with the printer",
    "保修期错过了怎么办",
    "不对外开放吗",
    "拜年放假吗",
    "你能帮我报销吗？",
    "哪些文件需要签字？",
    "报销需要什么资料？",
    "Which documents do I need to submit?",
    "What files do I need for the visa?",
    "谁开发了这个系统？",
    "how do I use the printer?",
    "What can I claim?",
    "我能问谁？",
    "How does the drier work?",
    "谢谢卡怎么领？",
    "公司有什么福利",
    "What time is the meeting?",
    "What date is the deadline?",
    "今天几点开会",
    "明天放假吗",
    "What is 2FA?",
    "我可以休什么假",
    "会议上有哪些资料",
    "which documents are required for leave?",
    "How many files can I upload?",
    "你好年假有几天",
    "谁的电脑好用",
    "what's up with the server?",
    "系统有哪些模块",
    "谁训练新员工",
    "早退会怎样",
    "great barrier reef",
    "What do you do if the alarm rings?",
    "有人吗在三楼",
    "可以上传什么文件",
    "2024-01-05",
    "10-12?",
    "你好电子公司在哪里？",
    "年假如何总结？",
    "What does help desk mean?",
    "Hello World 是什么？",
    "Thanks for the policy, what does it cost?",
    "早班几点开始？",
    "3个月+2天",
    "1-3个月",
    "2024-2025",
    "2024年-2025年",
    "出差3天补贴多少",
    "Do you ship to Chinese customers?",
    "who built the bridge",
    "where do the samples come from",
    "你们支持英文合同吗",
    "这个系统的负责人是谁",
    "这个门户怎么登录",
    "what does the portal cost",
    "what do you know about the leave policy",
    "Which documents are needed for a visa?",
    "which documents do I need",
    "what documents do you need from me",
    "what is this fee for",
    "can I ask for a refund?",
    "can you answer the phone in English on weekends?",
    "12人以上多少钱",
    "5个人3天多少钱",
    "3-5个工作日",
    "what have you got planned for Friday",
    "能帮我报销吗",
    "能帮我订票吗",
    "垃圾",
    "Rubbish?",
    "Can you tell me the wifi password?",
    "Please tell me the opening hours",
    "翻译费怎么报销",
    "合同需要翻译吗",
    "写个人总结要多少字",
    "24/7",
    "2024/1/5",
    "1,5 + 2",
    # Phrases that can be read in two ways, before something else.
    "谢谢" * 40 + "x",
    "hi there " * 400 + "x",
    "一点都" * 40 + "x",
]


@pytest.mark.parametrize(
    ("task", "message"), [(task, one) for task, some in MESSAGES.items() for one in some]
)
def test_message_that_asks_nothing_of_the_documents_gets_a_reply(task: Task, message: str) -> None:
    understood = understand(message)
    assert understood is not None
    assert understood.task is task


@pytest.mark.parametrize("question", ["摘要字数限制是多少", "总结报告什么时候交", "概要设计谁负责"])
def test_what_sounds_like_a_task_may_be_a_question(question: str) -> None:
    understood = understand(question)
    assert understood is None or understood.may_ask


@pytest.mark.parametrize(
    ("sum_", "result"),
    [("3加5再乘以2是多少", "16"), ("100减20再除以2", "40"), ("1,500 + 2", "1502")],
)
def test_sum_is_computed_as_it_is_said(sum_: str, result: str) -> None:
    assert (compute(sum_) or "").replace(",", "").endswith(f"= {result}")


@pytest.mark.parametrize(("name", "least"), [("one", 0.87), ("two", 0.73)])
def test_messages_of_other_authors_are_told_from_their_questions(name: str, least: float) -> None:
    rows = list(read_rows(SHIPPED.parent / "messages" / f"{name}.jsonl"))
    messages = [row["question"] for row in rows if row["kind"] != "search"]
    assert sum(understand(one) is not None for one in messages) / len(messages) > least
    understood = [understand(row["question"]) for row in rows if row["kind"] == "search"]
    # Where no document has the title, what may be a question is searched for.
    assert sum(one is not None and not one.may_ask for one in understood) <= 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_not_taken_for_small_talk(question: str) -> None:
    assert understand(question) is None


@pytest.mark.parametrize(
    "text",
    [
        "5² + 3²",
        "What is 400-820-8820?",
        "What is 2024/25?",
        "what is 24/7?",
        "9.00-17.30",
        "3 of 5",
    ],
)
def test_figures_that_are_no_sum_are_not_computed(text: str) -> None:
    assert compute(text) is None
    assert compute("What is 12-5?") == "12-5 = 7"


@pytest.mark.parametrize(
    ("message", "task"),
    [
        ("thanks!\n\nhello", Task.THANKS),
        ("Excuse me, what can you do?", Task.ABOUT),
        ("麻烦问一下，有哪些文档？", Task.LIST_DOCUMENTS),
        ("请翻译一下", Task.WRITING),
        ("能把年假规定译成英文吗", Task.WRITING),
    ],
)
def test_message_is_understood_in_several_lines_and_after_a_greeting(
    message: str, task: Task
) -> None:
    understood = understand(message)
    assert understood is not None
    assert understood.task is task
