"""The audit log as a page, through the API, as CSV and on the command line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy import insert, update

from portal.domain.people.audit import Origin, Source, SubjectKind
from portal.processes.cli import main
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.operations import maintenance
from portal.services.operations.reports import audit_log
from portal.services.people import accounts
from portal.store.models import AuditRow
from portal.web.operations.audit_pages import DETAIL_WORDS
from tests.conftest import PASSWORD, Portal
from tests.factories.cases import for_each

NOW = datetime(2026, 5, 4, 8, 30, tzinfo=UTC)


@pytest.fixture
def admin(client: FlaskClient, portal: Portal) -> FlaskClient:
    client.environ_base["HTTP_AUTHORIZATION"] = portal.headers()["Authorization"]
    return client


def add(services: Services, count: int, **values: object) -> None:
    """Add entries a minute apart, the last one now."""
    with services.database.begin() as session:
        session.execute(
            insert(AuditRow),
            [
                {"event": "sign_in", "source": "web", "created_at": NOW - timedelta(minutes=number)}
                | values
                | {"subject_title": f"entry {number}"}
                for number in range(count)
            ],
        )


def test_every_kind_of_subject_has_words() -> None:
    assert set(SubjectKind) <= set(DETAIL_WORDS)


def test_page_shows_who_did_what_from_where(admin: FlaskClient, portal: Portal) -> None:
    portal.user("bob")
    accounts.set_disabled(portal.services, portal.admin, portal.user("eve").id, disabled=True)
    admin.post("/api/auth/token", json={"username": "admin", "password": PASSWORD})
    page = admin.get("/admin/audit").get_data(as_text=True)
    for words in ("User disabled", "eve", "Signed in", "127.0.0.1", "Command line"):
        assert words in page
    chinese = admin.get("/admin/audit", headers={"Accept-Language": "zh-CN"})
    assert "审计日志" in chinese.get_data(as_text=True)


def test_page_filters_by_event_user_and_day(admin: FlaskClient, portal: Portal) -> None:
    add(portal.services, 1, event="user_disabled", actor_name="Ada", actor_id=portal.admin.id)
    add(portal.services, 1, event="role_changed", created_at=NOW - timedelta(days=1))

    def events(**query: str) -> list[str]:
        page = admin.get("/admin/audit", query_string=query).get_data(as_text=True)
        return [part.split('"')[0] for part in page.split('data-event="')[1:]]

    assert events(event="user_disabled") == ["user_disabled"]
    assert events(user="ada") == ["user_disabled"]
    assert events(until="2026-05-04") == ["user_disabled", "role_changed"]
    assert events(since="2026-05-04", until="2026-05-04") == ["user_disabled"]
    assert events(since="2026-05-03", until="2026-05-03") == ["role_changed"]
    assert events(event="new_device") == []
    for query in ({"event": "no such"}, {"since": "tomorrow"}, {"until": "2026-13-01"}):
        assert admin.get("/admin/audit", query_string=query).status_code == 422
    for day in ("0001-01-01", "9999-12-31"):
        assert admin.get(f"/admin/audit?since={day}&until={day}").status_code == 200


def test_days_of_the_filter_begin_in_the_time_zone_of_the_browser(
    admin: FlaskClient, portal: Portal
) -> None:
    late = datetime(2026, 5, 3, 20, tzinfo=UTC)  # In Shanghai it is 4 in the morning of 4 May.
    add(portal.services, 1, event="role_changed", created_at=late)
    admin.set_cookie("portal_timezone", "Asia/Shanghai")

    def is_found(day: str) -> bool:
        query = {"since": day, "until": day, "event": "role_changed"}
        page = admin.get("/admin/audit", query_string=query).get_data(as_text=True)
        return 'data-event="role_changed"' in page

    assert [is_found(day) for day in ("2026-05-03", "2026-05-04")] == [False, True]


def test_failed_sign_ins_are_found_by_the_name_that_was_typed(
    client: FlaskClient, portal: Portal
) -> None:
    body = {"username": "Nobody", "password": "not the password"}
    client.post("/api/auth/token", json=body)
    found = client.get("/api/admin/audit?user=nobody", headers=portal.headers()).get_json()
    assert [entry["event"] for entry in found["entries"]] == ["sign_in_failed"]
    found = client.get("/api/admin/audit?user=somebody", headers=portal.headers()).get_json()
    assert found["entries"] == []


def test_pages_follow_one_another_without_gaps(client: FlaskClient, portal: Portal) -> None:
    # Entries of the same time, as those of one transaction may be.
    add(portal.services, 25, created_at=NOW)
    headers, seen, cursor = portal.headers(), [], None
    while True:
        query = {"limit": "10", "until": "2026-06-01T00:00:00Z"} | (
            {"cursor": cursor} if cursor else {}
        )
        answer = client.get("/api/admin/audit", query_string=query, headers=headers).get_json()
        seen += [entry["subject"]["title"] if entry["subject"] else entry["id"]
                 for entry in answer["entries"]]  # fmt: skip
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 25
    bad = client.get("/api/admin/audit?cursor=x", headers=headers)
    assert bad.status_code == 400


@for_each("moment", ["0", "1767225600", "2026-05-04", "2026-05-04T09:30:00", "x"])
def test_api_accepts_dates_with_time_and_zone_only(admin: FlaskClient, moment: str) -> None:
    answer = admin.get("/api/admin/audit", query_string={"since": moment})
    assert answer.status_code == 422
    assert "2026-05-04T09:30:00Z" in answer.get_json()["error"]["message"]
    since = {"since": "2026-05-04T09:30:00Z"}
    assert admin.get("/api/admin/audit", query_string=since).status_code == 200


def test_export_is_csv_without_formulas(admin: FlaskClient, portal: Portal) -> None:
    add(
        portal.services, 1, actor_name='=HYPERLINK("http://evil.example")', actor_id=portal.admin.id
    )
    answer = admin.get("/admin/audit/export.csv?until=2026-05-04")
    assert answer.mimetype == "text/csv"
    assert answer.is_streamed
    found = list(csv.DictReader(io.StringIO(answer.get_data(as_text=True).removeprefix("\ufeff"))))
    assert [row["event"] for row in found] == ["sign_in"]
    assert found[0]["actor"] == '\'=HYPERLINK("http://evil.example")'
    assert found[0]["time"] == NOW.isoformat()


def test_export_includes_more_than_one_page_of_entries(admin: FlaskClient, portal: Portal) -> None:
    add(portal.services, 1200)
    lines = admin.get("/admin/audit/export.csv?until=2026-05-04").get_data(as_text=True)
    assert len(lines.strip().splitlines()) == 1201


def test_old_entries_are_deleted_when_the_settings_say(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    with portal.services.database.begin() as session:
        session.execute(update(AuditRow).values(created_at=datetime.now(UTC) - timedelta(days=400)))
        audit.record(session, AuditEvent.BACKUP_TAKEN)
    maintenance.run(make_services(audit={"retention_days": 0}))
    assert count(portal) == 2
    maintenance.run(make_services())
    assert count(portal) == 1


def count(portal: Portal) -> int:
    return len(list(audit_log.read_all(portal.services)))


def test_command_line_prints_each_entry_on_one_safe_line(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    portal.user("bob")
    with portal.services.database.begin() as session:
        audit.set_origin(Origin(Source.WEB, "192.0.2.1"))
        title = "evil\x1b[2J\n2026-01-01 fake"
        subject = audit.Subject(audit.SubjectKind.DOCUMENT, "1", title)
        audit.record(session, AuditEvent.DOCUMENT_PURGED, portal.admin, subject)
    audit.set_origin(None)
    monkeypatch.setenv("DATABASE_URL", portal.services.settings.database_url or "")
    monkeypatch.setenv("PORTAL_DATA_DIR", str(tmp_path))

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["audit", *arguments], catch_exceptions=False)
        return done.stdout if done.exit_code == 0 else f"{done.exit_code}"

    purged, bob, _ = run().splitlines()
    assert purged.endswith(
        "document_purged  by admin  document evil\\x1b[2J\\x0a2026-01-01 fake  from 192.0.2.1"
    )
    assert bob.endswith("user_created  by command_line  user bob")
    assert len(run("--event", "user_created").splitlines()) == 2
    assert run("--since", "2999-01-01") == ""
    assert run("--event", "nothing") == "2"
    rows = list(csv.DictReader(io.StringIO(run("--csv", "--event", "document_purged"))))
    assert [(row["actor"], row["address"]) for row in rows] == [("admin", "192.0.2.1")]
    assert "\x1b" not in rows[0]["subject"]
