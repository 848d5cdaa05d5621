"""A filled portal, and a check that a search of it is whole."""

from __future__ import annotations

from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.services import Services
from portal.services.search import engine
from tests.conftest import Portal

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
OFFICE = "The office closes at six. Visitors must sign in at the front desk."
QUESTION = "年假有几天"


def ask(portal: Portal, query: str = QUESTION, **wishes: object) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query, **wishes))


def titles(outcome: SearchOutcome) -> list[str]:
    return [hit.title for hit in outcome.hits]


def fill(services: Services) -> Portal:
    portal = Portal.of(services)
    portal.add(LEAVE, name="leave.txt")
    portal.add(OFFICE, name="office.txt")
    return portal


def is_whole(outcome: SearchOutcome) -> bool:
    """Return whether both legs ran and found the document."""
    return (
        outcome.degraded == ()
        and outcome.search_method is SearchMode.HYBRID
        and titles(outcome)[:1] == ["leave"]
        and outcome.hits[0].text_score > 0
        and outcome.hits[0].vector_score is not None
    )
