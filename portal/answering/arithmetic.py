"""Arithmetic typed as a question: "12*7+3 等于多少", "What is 15% of 80?"."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException

from portal.text.characters.folding import fold

_ASKS = re.compile(
    r"\A\s*(?:(?:please |can you )?(?:calculate|compute|work out)|what(?: is|'s| does)|how much is"
    r"|(?:请|麻烦)?(?:[你您])?(?:帮我|帮忙)?(?:计算|算)(?:一下|下)?|请问(?:一下)?)?\s*"
    r"|\s*(?:=|equals?|makes?|等于(?:多少|几)?|是多少|得(?:多少|几))?\s*[?!。.]*\s*\Z"
)
_UNITS = re.compile(r"(?<=\d)\s*(元|块钱?|美元|欧元|天|小时|分钟|个月|人|台|个|件|份)|[$€£¥]")
_SUM = re.compile(r"(?:[-\d.,+*/()%]|\s)+")
_WORDS = (
    ("×", "*"), ("÷", "/"), ("除以", "/"), ("加上", "+"), ("加", "+"), ("减去", "-"),
    ("减", "-"), ("乘以", "*"), ("乘", "*"), ("的", "*"), ("divided by", "/"), ("times", "*"), ("plus", "+"),
    ("minus", "-"), (" percent", "%"),
)  # fmt: skip
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# "2024-01-05", "10-12", "9.00-17.30", "1-3个月" and "2024/1/5", alone.
_DATE_OR_RANGE = re.compile(r"\s*(?:[\d\s-]+|[\d.]+\s?-\s?[\d.]+%?|\d+/\d+/\d+)[?!.。]*\s*")
# Phone numbers, "2024/25" and "24/7", whatever the words around them.
_NO_SUM = re.compile(r"\s*(?:\d{2,}(?:-\d{3,}){2,}|20\d\d/\d\d|24/7)\s*")
# Folding turns these into digits: 5² would become 52.
_NOT_DIGITS = re.compile("[²³¹⁰⁴-⁹₀-₉①-⑳½¼¾]")
_MAX_CHARACTERS = 80
_PLACES = 6


def compute(message: str) -> str | None:
    """Return "12*7+3 = 87"; None if the message is not a calculation with at least two numbers."""
    if len(message) > _MAX_CHARACTERS or _NOT_DIGITS.search(message):
        return None
    text = folded = fold(message).text
    for word, sign in _WORDS:
        text = text.replace(word, sign)
    text = re.sub(r"(?<=%) of |(?<=/\d) of ", "*", text)
    text = re.sub(r"(?<=[\d)])\s*x\s*(?=[\d(])", "*", text)
    text = _ASKS.sub("", text)
    # Amounts in different units, such as days and months, cannot be added.
    if len(set(_UNITS.findall(text))) > 1 and re.search(r"[-+]", text):
        return None
    # 3加5再乘以2 is (3+5)*2.
    first, *then = _UNITS.sub("", text).split("再")
    text = "(" * len(then) + ")".join([first, *then])
    if not _SUM.fullmatch(text) or not re.search(r"\d\s*%?\s*\)?\s*[-+*/]\s*\(?\s*\d", text):
        return None
    if _DATE_OR_RANGE.fullmatch(_UNITS.sub("", folded)) or _NO_SUM.fullmatch(text):
        return None
    shown = " ".join(text.split())
    try:
        plain = re.sub(r"(\d+(?:\.\d+)?)%", r"(\1/100)", _THOUSANDS.sub("", text))
        value = _value(ast.parse(plain.strip(), mode="eval").body)
        rounded = round(value, _PLACES).normalize()
    except (SyntaxError, ValueError, DecimalException, RecursionError):
        return None
    return f"{shown} = {rounded:f}"


def _value(node: ast.expr) -> Decimal:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Decimal(str(node.value))
    raise ValueError
