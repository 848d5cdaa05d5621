"""Samples for training as a portal reads them."""

from __future__ import annotations

import json
from pathlib import Path

from eval.fitting.read_samples import read_samples

LEAVE = """# Leave

Staff get 25 days of annual leave.

Anna Berg approves leave.

Unused days lapse on 31 March.
"""
TRAVEL = """# Travel

Anna Berg books all hotels.

Travel in Europe takes two days' notice.
"""


def test_samples_read_by_a_portal_are_labelled(tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text(LEAVE, encoding="utf-8")
    (tmp_path / "travel.md").write_text(TRAVEL, encoding="utf-8")
    rows = [
        {
            "document": "leave.md",
            "kind": "fact",
            "zh": "谁批准休假？",
            "en": "Who approves leave?",
            "gold": ["Anna Berg"],
        },
        {
            "document": "leave.md",
            "kind": "two",
            "zh": "",
            "en": "How many days of leave do I get, and when do unused days lapse?",
            "gold": ["25 days", "31 March"],
        },
        {"file": "travel.md", "kind": "absent", "question": "What does a hotel cost?"},
    ]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")

    found = read_samples(tmp_path)
    said = [[text for _, text in one.statements] for one in found]
    answers = [
        {text for n, text in enumerate(said[k]) if n in one.right} for k, one in enumerate(found)
    ]
    assert [one.question for one in found[:2]] == ["谁批准休假？", "Who approves leave?"]
    assert answers[0] == answers[1] == {"Anna Berg approves leave."}
    # The same name in another document may answer or not.
    assert "Anna Berg books all hotels." not in said[0]
    assert [one.question.strip("?") for one in found[2:4]] == [
        "How many days of leave do I get",
        "when do unused days lapse",
    ]
    both = {"Staff get 25 days of annual leave.", "Unused days lapse on 31 March."}
    assert answers[2] == answers[3] == both
    assert found[-1].right == ()
    # The sentence that the model found likeliest is always used for training.
    assert "Anna Berg books all hotels." in [said[-1][place] for place in found[-1].tempting]
    assert not any(one.all_right for one in found)
