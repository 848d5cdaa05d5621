"""The kinds of answers."""

from __future__ import annotations

from enum import StrEnum


class Wanted(StrEnum):
    """The kind of answer that a question wants; a statement without one is not an answer."""

    ANYTHING = "anything"
    MONEY = "money"
    PERCENT = "percent"
    FREQUENCY = "frequency"
    DURATION = "duration"
    WEIGHT = "weight"
    TEMPERATURE = "temperature"
    MEASURE = "measure"
    UNIT = "unit"  # A figure in the unit that the question names.
    COLOUR = "colour"
    COUNT = "count"
    NUMBER = "number"
    CLOCK = "clock"
    DAY = "day"
    TIME = "time"
    UNTIL = "until"  # A time, but no duration.
    CONTACT = "contact"
    PLACE = "place"
    HOLDER = "holder"  # Of an office, by name.
    PERSON = "person"
    REASON = "reason"
    NAME = "name"
    CODE = "code"
    LIST = "list"


# Nothing marks what answers these; 因为 and "because" are often left out.
ANY_TEXT = (Wanted.ANYTHING, Wanted.REASON)
# What answers these nearly always has their signs, which weigh more than those of other kinds.
WITH_SIGNS = (
    Wanted.MONEY, Wanted.FREQUENCY, Wanted.DURATION, Wanted.COUNT, Wanted.CODE, Wanted.CLOCK,
    Wanted.HOLDER, Wanted.PERSON, Wanted.PLACE, Wanted.WEIGHT, Wanted.TEMPERATURE, Wanted.COLOUR,
    Wanted.UNIT, Wanted.DAY, Wanted.NAME, Wanted.CONTACT,
    Wanted.MEASURE, Wanted.PERCENT,
)  # fmt: skip
# Points and lengths of time.
OF_TIMES = (
    Wanted.TIME, Wanted.UNTIL, Wanted.DAY, Wanted.CLOCK, Wanted.DURATION, Wanted.FREQUENCY,
)  # fmt: skip
# What happens to someone or something.
OF_EVENTS = (Wanted.PERSON, Wanted.PLACE, Wanted.TIME)
