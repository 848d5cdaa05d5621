"""Rounds of faults: a short one in every run, a long one with --faults, each with its seed.

What was tried, and how long each recovery took, is added up in a table at the end of the run;
--faults-page writes it into docs/reliability.md.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Several processes start, and a death is noticed after twenty seconds; busy machines take longer.
_TIMEOUT_S = 900
_LONG_TIMEOUT_S = 7200
_PROPERTY = "fault"
_BLOCK = re.compile(r"(<!-- faults -->\n)(.*?)(<!-- /faults -->)", re.DOTALL)
# How often each fault is tried, in the short round and in the long one; --kills changes it.
COUNTS = {
    "worker": (2, 100),
    "web": (1, 50),
    "database": (1, 25),
    "both": (1, 5),
    "use": (3, 60),
    "switch": (1, 40),
    "promotion": (1, 10),
    "migrate": (2, 20),
    "backup": (1, 10),
    "restore": (1, 10),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("portal")
    group.addoption("--kills", default="", metavar="NAME=N,…", help=f"of {', '.join(COUNTS)}")
    group.addoption("--minutes", type=float, default=2, help="how long people work in test_hour.py")
    group.addoption("--faults-page", type=Path, metavar="FILE", help="renew the table there")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    timeout_s = _LONG_TIMEOUT_S if config.getoption("--faults") else _TIMEOUT_S
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(timeout_s))


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--faults"))


@pytest.fixture
def only_long(is_long: bool) -> None:
    if not is_long:
        pytest.skip("in the long round alone: --faults")


@pytest.fixture
def counts(request: pytest.FixtureRequest, is_long: bool) -> dict[str, int]:
    """Return how often each fault is to be tried."""
    given = request.config.getoption("kills", "")
    chosen = dict(part.split("=") for part in given.split(",") if part)
    assert chosen.keys() <= COUNTS.keys(), f"--kills: one of {', '.join(COUNTS)}"
    return {name: int(chosen.get(name, both[is_long])) for name, both in COUNTS.items()}


@pytest.fixture
def minutes(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--minutes"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Return a random generator; `--seed` repeats that of a failed test, which printed it."""
    seed = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"\nrepeat with: ./run test {request.node.nodeid} --seed {seed}")  # noqa: T201
    return random.Random(seed)


class Tally:
    """Counts faults of a test for the table. Only a test that passes has lost nothing."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    def note(
        self,
        fault: str,
        *,
        recovery_s: float | None = None,
        tried: int = 1,
        retried: int | None = None,
    ) -> None:
        """Note a fault; `retried` is how often one person had to repeat a request."""
        self._node.user_properties.append((_PROPERTY, [fault, tried, recovery_s, retried]))


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    return Tally(request.node)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    noted = list(_noted(terminalreporter))
    if not noted:
        return
    rows = [f"| {' | '.join(row)} |" for row in _rows(noted)]
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line("\n".join(rows))
    if page := config.getoption("faults_page", None):
        text = page.read_text(encoding="utf-8")
        page.write_text(_BLOCK.sub(lambda m: m[1] + _merged(m[2], rows) + m[3], text), "utf-8")


def _merged(before: str, rows: Sequence[str]) -> str:
    """Return a table in which faults of this run replace those of an earlier one."""
    table = {row.split("|")[1]: row for row in before.splitlines()}
    table |= {row.split("|")[1]: row for row in rows}
    return "".join(f"{row}\n" for row in table.values())


def _noted(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, list[Any]]]:
    for outcome in ("passed", "failed"):
        for report in reporter.stats.get(outcome, []):
            if getattr(report, "when", None) == "call":
                for name, value in report.user_properties:
                    if name == _PROPERTY:
                        yield outcome, value


def _rows(noted: Sequence[tuple[str, list[Any]]]) -> Iterator[Sequence[str]]:
    yield (
        "fault",
        "tried",
        "acknowledged and lost",
        "back after, median",
        "longest",
        "retries a person",
    )
    yield "---", "--:", "--:", "--:", "--:", "--:"
    for fault in dict.fromkeys(value[0] for _, value in noted):
        of_it = [(outcome, value) for outcome, value in noted if value[0] == fault]
        times = [value[2] for _, value in of_it if value[2] is not None]
        retries = [value[3] for _, value in of_it if value[3] is not None]
        is_well = all(outcome == "passed" for outcome, _ in of_it)
        yield (
            fault,
            str(sum(value[1] for _, value in of_it)),
            "0" if is_well else "a test failed",
            f"{statistics.median(times):.1f} s" if times else "–",
            f"{max(times):.1f} s" if times else "–",
            f"{max(retries)} at most" if retries else "–",
        )
