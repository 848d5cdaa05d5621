"""Fit the weights that tell what a message wants: `python -m eval.fitting.intents`.

`eval/data/messages` has ``{intent, message}`` a line. The questions of other sets are questions
here as well, and so are titles and headings, which are typed to search for. Writes
`portal/answering/intents.npz`, and prints how many messages are told right of the authors whose
lines are not trained on: less than a minute. Needs the extra with torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from eval.fitting import pairs
from eval.sets import SHIPPED, read_rows
from portal.answering.intents import BUCKETS, TOLD_APART, WEIGHTS, Intent, chances, features

MESSAGES = SHIPPED.parent / "messages"
HELD_OUT = tuple(sorted(MESSAGES.glob("held-out-*.jsonl")))
# Titles and headings are typed to search for them.
_QUESTIONS = "title", "heading", "asked", "asked_across", "near", "near_across"
_QUESTIONS_TAKEN = 40_000
# What users typed and was got wrong weighs more, and so do the few remarks on an answer.
_REPEATED = 5
_REPEATED_SETS = "portal.jsonl", "remarks.jsonl"
_STEPS, _RIDGE = 60, 1e-6
# Requests that mean the same whatever the document is called, or the words to translate are.
_REQUESTS = {
    Intent.QUESTION: (
        "tell me more about {}", "more about {} please", "explain {}", "what else does {} say?",
        "give me an example of {}", "what do you mean by {}?", "is it true that {}?",
        "are you sure about {}?", "详细说说{}", "具体说说{}", "解释一下{}", "多说说{}",
        "{}是什么意思", "举个{}的例子", "{}还有什么", "{}确定吗", "{}的依据是什么",
    ),
    Intent.OUTLINE: (
        "summarize {}", "Summarise the {}", "can you summarize {}?", "outline {}", "summary of {}",
        "give me the main points of {}", "what are the key points of {}?", "tl;dr {}",
        "what is {} about?", "sum up {}", "总结一下{}", "概括{}", "{}主要讲了什么", "总结《{}》",
        "列出{}的要点", "{}的主要内容是什么？", "概述一下{}", "{} 总结",
    ),
    Intent.COMPARISON: (
        "compare {} and {}", "Compare {} with {}", "compare the {} to the {}", "比较{}和{}",
        "对比一下{}和{}", "differences between {} and {}", "{}和{}这两份文件有什么区别",
        "What is the difference between {} and {}?", "{}和{}有什么区别？",
    ),
    Intent.WRITING: (
        "translate {} into Chinese", "Translate '{}' to German", "translate: {}", "{} in English",
        "how do you say {} in English?", "what does {} mean in Chinese?", "{}用英语怎么说",
        "把{}翻译成英文", "翻译：{}", "put this in French: {}", "{}是什么意思，翻译一下",
        "write an e-mail about {}", "写一封关于{}的邮件",
    ),
}  # fmt: skip
_NAMES_PER_REQUEST = 60
# Said before and after what is asked; they change nothing in what a message wants.
_BEFORE = (
    "hi, ", "hello, ", "please ", "could you please ", "I'd like to know: ", "hey, quick one: ",
    "你好，", "请问", "麻烦问一下，", "您好！", "不好意思，", "那个，",
)  # fmt: skip
_AFTER = (
    " please", ", thanks", " thank you!", " pls", " for me?", " asap",
    "，谢谢", "，麻烦了", "呀", "吧", "？谢谢！", "，急",
)  # fmt: skip
_CHANGED_BY_NOTHING = {
    Intent.QUESTION, Intent.OUTLINE, Intent.WRITING, Intent.LIST_DOCUMENTS, Intent.MORE,
    Intent.DOUBT,
}  # fmt: skip
Sample = tuple[str, Intent]


def samples() -> list[Sample]:
    """Return the messages to train on, in the same order each time. Raises BadSet."""
    trained_on = sorted(set(MESSAGES.glob("*.jsonl")) - set(HELD_OUT))
    found = [sample for path in trained_on for sample in read(path)]
    found += _REPEATED * [one for name in _REPEATED_SETS for one in read(MESSAGES / name)]
    found += [with_courtesy(sample) for sample in found if sample[1] in _CHANGED_BY_NOTHING]
    found += _requests(sorted(set(_texts("title", "heading"))))
    others = sorted(set(_texts(*_QUESTIONS)))
    return found + [(one, Intent.QUESTION) for one in random.sample(others, _QUESTIONS_TAKEN)]


def _requests(names: Sequence[str]) -> Iterator[Sample]:
    """Yield each request with names of documents and of their parts."""
    for intent, requests in _REQUESTS.items():
        for request in requests:
            for _ in range(_NAMES_PER_REQUEST):
                yield request.format(*random.sample(names, request.count("{}"))), intent


def read(path: Path) -> list[Sample]:
    return [(row["message"], Intent(row["intent"])) for row in read_rows(path)]


def with_courtesy(sample: Sample) -> Sample:
    message, intent = sample
    return f"{random.choice(_BEFORE)}{message}{random.choice(_AFTER)}", intent


def _texts(*fields: str) -> Iterator[str]:
    """Yield the texts of these fields of statements, each of which has one or a list of texts."""
    for folder in (pairs.OTHER_WORDS, pairs.NEAR_MISSES):
        for path in sorted(folder.glob("*.jsonl")):
            for row in read_rows(path):
                for field in fields:
                    yield from [row[field]] if isinstance(row[field], str) else row[field]


def fit(trained_on: Sequence[Sample]) -> np.ndarray:
    """Return the weights of each bucket and the constants: (BUCKETS + 1, intents)."""
    buckets = [features(message) for message, _ in trained_on]
    lengths = torch.tensor([len(one) for one in buckets])
    flat = torch.tensor([bucket for one in buckets for bucket in one])
    shares = (1 / lengths.sqrt()).repeat_interleave(lengths)
    starts = torch.cat([torch.tensor([0]), lengths.cumsum(0)[:-1]])
    wanted = torch.tensor([TOLD_APART.index(intent) for _, intent in trained_on])
    weights = nn.Parameter(torch.zeros(BUCKETS, len(TOLD_APART)))
    constants = nn.Parameter(torch.zeros(len(TOLD_APART)))
    optimiser = torch.optim.LBFGS(
        [weights, constants], max_iter=_STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        odds = functional.embedding_bag(
            flat, weights, starts, mode="sum", per_sample_weights=shares
        )
        cost = functional.cross_entropy(odds + constants, wanted) + _RIDGE * weights.square().sum()
        cost.backward()
        return cost

    optimiser.step(loss)
    found: np.ndarray = torch.cat([weights, constants[None]]).detach().numpy()
    return found


def main() -> None:
    random.seed(0)
    weights = fit(samples())
    np.savez_compressed(WEIGHTS, weights=weights.astype(np.float16))
    for path in HELD_OUT:
        rows = [(message, intent) for message, intent in read(path) if intent in TOLD_APART]
        found = [chances(message) for message, _ in rows]
        right = [max(one, key=one.__getitem__) for one in found]
        count = sum(one == intent for one, (_, intent) in zip(right, rows, strict=True))
        print(f"{path.stem}: {count} of {len(rows)} told right")


if __name__ == "__main__":
    main()
