"""Question sets: reading them, and the errors about invalid files."""

from __future__ import annotations

import json

import pytest

from eval import sets
from eval.__main__ import main
from eval.sets import BadSet

PASSAGE = {"id": "p1", "title": "Hours", "text": "The library closes at nine."}
QUESTION = {"id": "q1", "text": "When does it close?", "qrels": {"p1": 1}}


def write(directory, chunks=(PASSAGE,), questions=(QUESTION,)):
    for kind, rows in (("docs", chunks), ("queries", questions)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (directory / f"one.{kind}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return directory


def test_set_is_read(tmp_path):
    one = sets.load(write(tmp_path), "one")
    assert sets.names(tmp_path) == ["one"]
    assert one.chunks[0].title == "Hours"
    assert one.questions[0].relevant == {"p1"}


def test_byte_order_mark_blank_lines_and_numbers_as_ids_are_accepted(tmp_path):
    questions = [{"id": 7, "text": "?", "qrels": {"8": 1}}]
    write(tmp_path, [{"id": 8, "text": "a"}, ""], questions)
    path = tmp_path / "one.docs.jsonl"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    one = sets.load(tmp_path, "one")
    assert one.chunks[0].id == "8"
    assert one.questions[0].relevant == {"8"}


def test_questions_without_an_answer_in_the_set_are_left_out(tmp_path):
    others = [{"id": "q2", "text": "?", "qrels": {"p9": 1}}, {"id": "q3", "text": "?", "qrels": {}}]
    assert len(sets.load(write(tmp_path, questions=[QUESTION, *others]), "one").questions) == 1


@pytest.mark.parametrize(
    ("chunks", "questions", "said"),
    [
        (["{"], [QUESTION], "one.docs.jsonl, line 1: no JSON"),
        (["[]"], [QUESTION], "one.docs.jsonl, line 1: no JSON object"),
        ([{"id": "p1"}], [QUESTION], "one.docs.jsonl, line 1: `text` is missing"),
        ([PASSAGE, PASSAGE], [QUESTION], "1 ids occur twice"),
        (
            [PASSAGE],
            [{"text": "?", "qrels": {"p1": 1}}],
            "one.queries.jsonl, line 1: `id` is missing",
        ),
        ([PASSAGE], [{"id": 1, "text": "?", "qrels": ["p1"]}], "`qrels` has to map"),
        (
            [PASSAGE],
            [QUESTION, {"id": "q2", "qrels": {"9": 1}}],
            "one.queries.jsonl, line 2: `text` is missing",
        ),
        (
            [PASSAGE],
            [QUESTION, {"text": "?", "qrels": {}}],
            "one.queries.jsonl, line 2: `id` is missing",
        ),
        ([PASSAGE], [{"id": 1, "text": "?", "qrels": {"p1": "x"}}], "is no number"),
        ([PASSAGE], [{"id": 1, "text": "?", "qrels": {}}], "no question has a passage"),
    ],
)
def test_error_of_a_broken_set_names_the_place(tmp_path, chunks, questions, said):
    write(tmp_path, chunks, questions)
    with pytest.raises(BadSet, match=said.replace(".", r"\.")):
        sets.load(tmp_path, "one")


def test_folder_without_sets_is_reported(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 1
    assert "there is no set in" in capsys.readouterr().err


def test_missing_folder_is_reported(tmp_path, capsys):
    assert main(["--data", str(tmp_path / "none")]) == 1
    assert "is no directory" in capsys.readouterr().err


def test_unknown_set_names_the_known_ones(tmp_path, capsys):
    assert main(["--data", str(write(tmp_path)), "--sets", "two"]) == 1
    assert "there is no set two" in capsys.readouterr().err
