"""The portal at a glance: figures by day, of searches, and who sees them."""

from __future__ import annotations

import re

import pytest

from portal import create_app
from portal.errors import Forbidden
from portal.services.answers import conversations
from portal.services.operations.reports import overview
from tests.conftest import Portal
from tests.factories.answers import ask


def test_overview_counts_answers_uploads_and_bytes_of_today(portal: Portal) -> None:
    services, admin = portal.services, portal.admin
    before = sum(hit.count for hit in overview.show(services, admin).hits)
    document = portal.add("The mill stands by the river.", name="mill.txt")
    begun = conversations.create(services, admin).id
    ask(services, admin, begun, "Where does the mill stand?")
    ask(services, admin, begun, "Who won the cup?")
    found = overview.show(services, admin)
    today = found.days[-1]
    assert len(found.days) == overview.DAYS
    assert (today.answers, today.read, today.failed) == (2, 1, 0)
    assert today.stored_bytes == document.size_bytes
    assert found.days[0].stored_bytes == 0
    assert sum(hit.count for hit in found.hits) >= before + 1
    assert found.latency_s[-1].limit is None
    with pytest.raises(Forbidden):
        overview.show(services, portal.user("mei"))


def test_plots_have_a_table_with_the_same_numbers(portal: Portal) -> None:
    client = create_app(portal.services).test_client()
    page = client.get("/admin/overview", headers=portal.headers()).get_data(as_text=True)
    figures = re.findall(r'<figure class="plot".*?</figure>', page, re.DOTALL)
    assert len(figures) == 5
    for figure in figures:
        rows = figure.count('<th scope="row">')
        assert rows == figure.count('class="plot-bar"') > 1
    assert "≤ 0<" not in page
    assert "style=" not in page


def test_audit_log_is_searched_by_address_and_keeps_the_query(portal: Portal) -> None:
    client = create_app(portal.services).test_client()
    client.post("/api/auth/token", json={"username": "eve", "password": "x" * 12})
    found = client.get("/admin/audit?q=127.0.0&event=sign_in_failed", headers=portal.headers())
    page = found.get_data(as_text=True)
    assert page.count('data-testid="audit-entry"') == 1
    assert 'value="127.0.0"' in page
    missed = client.get("/admin/audit?q=198.51", headers=portal.headers()).get_data(as_text=True)
    assert 'data-testid="audit-empty"' in missed
