import json

import pytest

from portal.text.server_errors import strip_echo

PASSAGE = "The mauve elephant of the third archive was never catalogued by anybody at all."


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("cannot embed: 退款", "退款"),
        ("bad input: what is REFUND policy here", "What is refund policy here"),
        (f"too long: {PASSAGE[10:60]}…", PASSAGE),
        ("输入“第三档案馆的大象”有误", "关于第三档案馆的大象从未编目"),
        (json.dumps({"error": f"invalid: {PASSAGE}"}), PASSAGE),
        (json.dumps({"error": "第三档案馆的大象"}), "关于第三档案馆的大象从未编目"),
        ("refused:\n  the  mauve\nelephant of the third archive", PASSAGE),
    ],
)
def test_repetition_of_the_input_is_removed(said, sent):
    told = strip_echo(said, ["something else entirely", sent])
    assert "left out" in told
    for word in ("refund", "mauve", "退款", "档案馆", "\\u"):
        assert word not in told.lower()


def test_short_words_of_the_input_are_not_matched_within_others():
    said = "This model does not exist within your organisation"
    assert strip_echo(said, ["hi", "no"]) == said
    assert "left out" in strip_echo("cannot answer: hi", ["hi"])


@pytest.mark.parametrize(
    "said",
    [
        "The model `text-embedding-9` does not exist",
        "maximum context length is 8192 tokens",
        "Incorrect API key provided",
        "模型不存在",
    ],
)
def test_message_without_echo_is_kept_on_one_line(said):
    assert strip_echo(f" {said}\n", ["退款", "a", "", PASSAGE, "context"[:3] + "!"]) == said
