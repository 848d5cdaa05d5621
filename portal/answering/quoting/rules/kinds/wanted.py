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
    UNTIL = "until"  # A time, but not a duration.
    CONTACT = "contact"
    PLACE = "place"
    HOLDER = "holder"  # The holder of an office, by name.
    PERSON = "person"
    REASON = "reason"
    NAME = "name"
    CODE = "code"
    LIST = "list"


# Nothing marks an answer to these; 因为 and "because" are often left out.
ANY_TEXT = (Wanted.ANYTHING, Wanted.REASON)
# Answers to these nearly always have the signs of their kind, so these weigh more.
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
# Kinds of answer that say who, where or when of an event.
OF_EVENTS = (Wanted.PERSON, Wanted.PLACE, Wanted.TIME)
