"""The command line: effects, output and exit codes."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner, Result

from portal.domain.documents import DocumentStatus
from portal.errors import SecondFactorRequired
from portal.processes.cli import documents, main
from portal.services.documents import library
from portal.services.documents.ingestion import jobs
from portal.services.documents.intake import importing, uploads
from portal.services.people import sessions, tokens
from tests.conftest import PASSWORD, Portal
from tests.factories import files
from tests.factories.cases import for_each
from tests.factories.second_factors import set_up_totp


@pytest.fixture
def run(portal: Portal, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("PORTAL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PORTAL_SECRET_KEY", portal.services.secret_key)
    monkeypatch.setenv("PORTAL_EMBEDDING__PROVIDER", "hashing")

    def call(*arguments: str, given: str | None = None) -> Result:
        return CliRunner().invoke(main, arguments, input=given, catch_exceptions=False)

    return call


def test_user_is_created_once_and_can_sign_in(run, portal: Portal) -> None:
    made = run("user", "create", "ada", "--password-stdin", given=f"{PASSWORD}\n")
    assert made.exit_code == 0
    assert sessions.sign_in(portal.services, name="ada", password=PASSWORD)
    again = run("user", "create", "ADA", "--password-stdin", given=f"{PASSWORD}\n")
    assert again.exit_code == 1
    assert "ADA" in again.stderr
    weak = run("user", "create", "eve", "--password-stdin", given="short\n")
    assert weak.exit_code == 1
    assert len(weak.stderr.splitlines()) == 1


def test_second_factors_are_shown_and_removed(run, portal: Portal) -> None:
    set_up_totp(portal, portal.admin)
    shown = run("user", "second-factor", "admin").stdout
    assert shown.splitlines() == [
        "authenticator app: yes",
        "passkeys: none",
        "recovery codes left: 10",
    ]
    with pytest.raises(SecondFactorRequired):
        sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    assert run("user", "second-factor", "admin", "--remove").exit_code == 0
    assert sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    again = run("user", "second-factor", "admin", "--remove")
    assert (again.exit_code, len(again.stderr.splitlines())) == (1, 1)


def test_token_opens_the_portal(run, portal: Portal) -> None:
    printed = run("token", "admin", "--expires", "5m")
    assert printed.exit_code == 0
    token = printed.stdout.strip()
    assert tokens.authenticate(portal.services, token).user == portal.admin
    assert run("token", "nobody").exit_code == 1
    for expires in ("", "1", "1w", "-1h", "0s", "99999999999d"):
        assert run("token", "admin", "--expires", expires).exit_code == 2, expires


def test_import_reads_folders_and_reports_what_it_could_not_read(
    run, portal: Portal, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    files.gb18030_text(folder / "一.txt")
    files.english_markdown(folder / "inner" / "two.md")
    (folder / ".hidden.txt").write_text("not for the portal", encoding="utf-8")
    (folder / "link.txt").symlink_to("/etc/hostname")
    files.empty_file(folder / "nothing.txt")
    first = run("import", str(folder), "--domain", "lab", "--wait")
    assert first.exit_code == 1
    assert "nothing.txt" in first.stderr
    assert "2 stored, 0 already there, 1 failed" in first.stderr
    page = library.list_documents(portal.services, portal.admin)
    assert {(d.title, d.status, d.domain) for d in page.items} == {
        ("一", DocumentStatus.READY, "lab"),
        ("two", DocumentStatus.READY, "lab"),
    }
    again = run("import", str(folder / "一.txt"), str(folder / "inner"), "--wait")
    assert again.exit_code == 0
    assert "0 stored, 2 already there, 0 failed" in again.stderr


def test_stopped_import_continues_without_duplicates(
    run, portal: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"Text number {number} of six.", encoding="utf-8")
    Path(os.fsdecode(bytes(folder) + b"/7 caf\xe9.txt")).write_bytes(b"A name in Latin-1.")
    (folder / "8 spaces.md").write_bytes(b" \n\n ")
    stored: list[str] = []

    def store_and_be_stopped(*args, **named):
        receipt = uploads.store_upload(*args, **named)
        stored.append(named["file_name"])
        if len(stored) == 3:
            signal.raise_signal(signal.SIGTERM)
        return receipt

    monkeypatch.setattr(importing, "store_upload", store_and_be_stopped)
    stopped = run("import", str(folder), "--wait")
    assert stopped.exit_code == 128 + signal.SIGTERM
    assert "3 stored, 0 already there, 0 failed" in stopped.stderr
    assert "again to continue" in stopped.stderr
    # The portal's own worker may have read some of them by then.
    so_far = library.list_documents(portal.services, portal.admin).items
    left = 7 - sum(d.status is DocumentStatus.READY for d in so_far)
    queued = run("import", str(folder))
    assert queued.exit_code == 0
    assert "5 stored, 3 already there, 0 failed" in queued.stderr
    assert "--wait" in queued.stderr
    assert len(stored) == 8  # Files that are already stored are skipped.
    whole = run("import", str(folder), "--wait")
    assert whole.exit_code == 1
    assert "0 stored, 8 already there, 1 failed" in whole.stderr
    assert "8 spaces.md: " in whole.stderr
    assert f"{left} became ready with {left} passages" in whole.stderr
    again = run("import", str(folder), "--wait")
    assert "0 stored, 7 already there, 1 tried again, 1 failed" in again.stderr
    page = library.list_documents(portal.services, portal.admin)
    assert sorted(d.title for d in page.items) == [*"012345", "7 caf\ufffd", "8 spaces"]


def test_import_never_widens_visibility(run, portal: Portal, tmp_path: Path) -> None:
    (tmp_path / "failed.md").write_bytes(b" \n ")
    (tmp_path / "ready.txt").write_text("Some words.", encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("failed.md", "ready.txt")]
    run("import", *paths, "--wait")
    for outcome in ("1 stored, 1 already there", "0 stored, 1 already there, 1 tried again"):
        again = run("import", *paths, "--private", "--wait")
        assert outcome in again.stderr
        assert "ready.txt: already exists, visible to everyone" in again.stderr
    page = library.list_documents(portal.services, portal.admin)
    assert sorted((d.title, d.visibility.value) for d in page.items) == [
        ("failed", "private"),
        ("failed", "shared"),
        ("ready", "shared"),
    ]


def test_import_stores_deleted_documents_again(
    run, portal: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "failed.md"
    path.write_bytes(b" \n ")
    run("import", str(path), "--wait")
    retry = jobs.retry

    def throw_away_first(services, user, document_id):
        library.delete_document(services, user, document_id)
        retry(services, user, document_id)

    monkeypatch.setattr(jobs, "retry", throw_away_first)
    assert "1 stored, 0 already there" in run("import", str(path)).stderr


def test_doctor_and_models_report_on_this_database(run) -> None:
    said = run("doctor")
    assert said.exit_code == 0
    assert "fit to serve" in said.stdout
    assert "pg_textsearch" in said.stdout
    assert "hashing" in run("models").stdout


def test_broken_pipe_prints_no_error(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def echo(*_arguments: object, err: bool = False, **_options: object) -> None:
        assert not err
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(click, "echo", echo)
    said = run("audit", "--csv")
    assert (said.exit_code, said.stderr) == (1, "")


def test_account_is_not_linked_without_an_issuer(run) -> None:
    said = run("user", "link", "admin", "7f3a")
    assert said.exit_code == 1
    assert "set PORTAL_OIDC__ISSUER or PORTAL_JWT__OUTSIDE__ISSUER" in said.stderr


def test_models_are_built_compared_switched_and_dropped(run, portal: Portal) -> None:
    portal.add("Divers must not touch the coral.", name="coral.txt")
    built = run("reindex", "--model", "hashing:words@64", "--batch-size", "1")
    assert built.exit_code == 0
    assert "1 passages embedded" in built.stderr
    listed = run("models").stdout
    assert "hashing-384" in listed
    assert "ready" in listed
    assert "hit@10" in run("models", "compare", "hashing-384", "words").stdout
    assert "words serves instead of hashing-384" in run("models", "switch", "words").stdout
    assert "to roll back to" in run("models").stdout
    assert "hashing-384 serves" in run("models", "rollback").stdout
    again = run("reindex", "--model", "words", "--switch")
    assert "words serves" in again.stdout
    refused = run("models", "drop", "words", "--yes")
    assert refused.exit_code == 1
    assert "is active" in refused.stderr
    assert run("models", "drop", "hashing-384", "--yes").exit_code == 0
    assert "hashing-384" not in run("models").stdout
    assert run("reindex", "--model", "nothing").exit_code == 1
    assert run("reindex").exit_code == 0


def test_migrate_is_safe_to_repeat(run) -> None:
    assert run("migrate").exit_code == 0
    assert run("migrate", "--check").exit_code == 0


@for_each(
    ("arguments", "status"),
    [
        (["frobnicate"], 2),
        (["token"], 2),
        (["serve", "--port", "99999"], 2),
        (["serve", "--workers", "0"], 2),
        (["import", "/nowhere/at/all"], 2),
        (["import", "--owner", "nobody", "/etc/hostname"], 1),
    ],
)
def test_wrong_usage_exits_2_and_failure_1(run, arguments: list[str], status: int) -> None:
    assert run(*arguments).exit_code == status


def test_import_uses_data_dir_and_early_ctrl_c_exits_130(
    run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(ctx: click.Context) -> NoReturn:
        assert ctx.obj["data_dir"] == tmp_path / "elsewhere"
        raise KeyboardInterrupt

    monkeypatch.setattr(documents, "open_services", interrupted)
    done = run("import", str(tmp_path), "--data-dir", str(tmp_path / "elsewhere"))
    assert (done.exit_code, done.stderr) == (128 + signal.SIGINT, "portal: stopped\n")


@for_each("url", ["postgresql://u@127.0.0.1:1/x", "garbage", "mysql://x/y"])
@for_each("command", ["doctor", "models", "token"])
def test_missing_database_is_reported_in_one_line(
    run, monkeypatch: pytest.MonkeyPatch, url: str, command: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    said = run(command, *(["admin"] if command == "token" else []))
    assert said.exit_code == 1
    assert len(said.stderr.strip().splitlines()) == 1
    assert said.stderr.startswith("portal: ")
