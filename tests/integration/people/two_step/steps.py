"""Steps of a sign-in with a second factor."""

from __future__ import annotations

from sqlalchemy import text

from tests.conftest import Portal
from tests.factories.browser import Browser

STEP = "/login/second-step"
TOKEN = "/api/auth/token"
DOCUMENTS = "/api/knowledge/documents"


def step(browser: Browser, code: str):
    return browser.post(STEP, {"code": code}, page=STEP)


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/documents").status_code == 200


def audited(portal: Portal, event: str) -> list[dict[str, object]]:
    with portal.services.database.begin() as session:
        rows = session.execute(
            text("SELECT details FROM audit_log WHERE event = :event ORDER BY created_at"),
            {"event": event},
        )
        return list(rows.scalars())
