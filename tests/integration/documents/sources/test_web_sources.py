"""Folders that follow web pages, sitemaps and feeds."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents.sources import SyncRun
from portal.errors import InvalidInput
from portal.services import Services
from portal.services.documents import folders, library
from portal.services.documents.sources import folder_sources, syncing
from portal.services.documents.sources.registry import KINDS
from portal.services.documents.versions import revisions
from portal.store.documents.folders import sources as source_store
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.servers.certificates import Authority
from tests.factories.servers.website import Reply, Website, serve_website
from tests.integration.documents.sources.tied_folder import Tied, counts


@pytest.fixture
def site() -> Iterator[Website]:
    with serve_website() as site:
        yield site


@pytest.fixture
def tied(make_services: Callable[..., Services], site: Website, tmp_path: Path) -> Tied:
    services = make_services(
        sources={
            "hosts": (f"127.0.0.1:{site.port}",),
            "private_networks": ("127.0.0.0/8",),
            "delay_s": 0,
            "max_pages": 6,
        }
    )
    portal = Portal.of(services)
    mei = portal.user("mei")
    return Tied(portal, tmp_path, mei, folders.create_folder(services, mei, name="Followed"))


def refused(run: SyncRun) -> dict[str, str]:
    """Return the reasons for refusals by path."""
    return {one.path: str(one.failure.params) for one in run.listed if one.failure}


def titles(tied: Tied) -> set[str]:
    return {
        library.get_summary(tied.portal.services, tied.mei, one).title
        for one in tied.found().values()
    }


def sitemap(site: Website, *entries: tuple[str, str]) -> None:
    dates = {path: f"<lastmod>{date}</lastmod>" if date else "" for path, date in entries}
    urls = (f"<url><loc>{site.url(path)}</loc>{date}</url>" for path, date in dates.items())
    site.replies["/sitemap.xml"] = Reply(
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(urls)}</urlset>'.encode()
    )


def test_pages_of_a_list_are_added_changed_and_removed(tied: Tied, site: Website) -> None:
    first = site.page("/leave", "Twelve days a year.", ETag='"1"')
    second = site.page("/travel", "Trains are paid for.", Last_Modified="Tue, 24 Nov 2026")
    tied.tie(f"{first}\n\n  {second}#part\n{second}", kind="pages")
    assert counts(tied.run()) == (2, 0, 0, 0)
    assert set(tied.found()) == {"leave.html", "travel.html"}
    assert titles(tied) == {"About /leave", "About /travel"}
    before = tied.found()
    tied.index()
    site.requests.clear()

    assert counts(tied.run()) == (0, 0, 0, 0)
    conditions = [
        (sent.get("If-None-Match"), sent.get("If-Modified-Since"))
        for path, sent in site.requests
        if path != "/robots.txt"
    ]
    assert conditions == [('"1"', None), (None, "Tue, 24 Nov 2026")]

    site.page("/leave", "Fifteen days a year.", ETag='"2"')
    changed = tied.run()
    assert [(one.change, one.path) for one in changed.listed] == [("changed", first)]
    tied.index()
    versions = revisions.list_revisions(tied.portal.services, tied.mei, before["leave.html"])
    assert [one.number for one in versions.items] == [2, 1]

    tied.tie(second, kind="pages")
    assert counts(tied.run()) == (0, 0, 1, 0)
    assert set(tied.found()) == {"travel.html"}


def test_page_with_unchanged_words_is_not_a_new_version(tied: Tied, site: Website) -> None:
    address = site.page("/leave", "Twelve days.<script>token = 1</script>")
    tied.tie(address, kind="pages")
    tied.run()
    tied.index()
    site.page("/leave", "Twelve days.<script>token = 2</script><!-- 10:30 -->", ETag='"2"')
    assert counts(tied.run()) == (0, 0, 0, 0)
    site.requests.clear()
    assert counts(tied.run()) == (0, 0, 0, 0)
    assert [sent.get("If-None-Match") for path, sent in site.requests if path == "/leave"] == [
        '"2"'
    ]


def test_failing_page_is_refused_and_keeps_its_document(tied: Tied, site: Website) -> None:
    addresses = [site.page(f"/{number}", f"Page number {number}.") for number in range(3)]
    tied.tie("\n".join(addresses), kind="pages")
    tied.run()
    site.replies["/0"] = Reply(status=500)
    del site.replies["/1"]
    site.replies["/2"] = Reply(status=410)
    run = tied.run()
    assert counts(run) == (0, 0, 1, 2)
    assert set(tied.found()) == {"0.html", "1.html"}
    assert "500" in refused(run)[addresses[0]]
    assert "404" in refused(run)[addresses[1]]


def test_nothing_is_removed_when_the_server_is_gone(tied: Tied, site: Website) -> None:
    sitemap(site, ("/leave", ""))
    site.page("/leave", "Twelve days.")
    tied.tie(site.url("/sitemap.xml"), kind="sitemap")
    tied.run()
    site.replies = {"/sitemap.xml": Reply(status=502), "/leave": Reply(status=502)}
    for reply in (Reply(status=502), Reply(b"<html>Sign in"), Reply(b"<urlset></urlset>")):
        site.replies["/sitemap.xml"] = reply
        run = tied.run()
        assert run.failure is not None
        assert run.failure.code == "source_unavailable"
        assert set(tied.found()) == {"leave.html"}


def test_sitemap_dates_decide_which_pages_are_fetched(tied: Tied, site: Website) -> None:
    site.page("/docs/guide/install", "Install it.")
    site.page("/docs/use", "Use it.")
    sitemap(site, ("/docs/guide/install", "2026-01-01"), ("/docs/use", "2026-01-01"))
    tied.tie(site.url("/sitemap.xml"), kind="sitemap")
    assert counts(tied.run()) == (2, 0, 0, 0)
    (docs,) = folders.list_children(tied.portal.services, tied.mei, [tied.folder])
    assert docs.name == "docs"
    tied.index()
    site.asked()
    assert counts(tied.run()) == (0, 0, 0, 0)
    assert site.asked() == ["/sitemap.xml"]

    site.page("/docs/use", "Use it well.")
    sitemap(site, ("/docs/guide/install", "2026-01-01"), ("/docs/use", "2026-02-01"))
    assert counts(tied.run()) == (0, 1, 0, 0)
    assert site.asked() == ["/sitemap.xml", "/docs/use"]
    sitemap(site, ("/docs/use", "2026-02-01"))
    assert counts(tied.run()) == (0, 0, 1, 0)


def test_incomplete_sitemap_removes_nothing(tied: Tied, site: Website) -> None:
    for name in ("a", "b"):
        site.page(f"/{name}", f"Page {name}.")
        urls = f"<urlset><url><loc>{site.url(f'/{name}')}</loc></url></urlset>"
        site.replies[f"/{name}.xml.gz"] = Reply(gzip.compress(urls.encode()))
    index = "".join(
        f"<sitemap><loc>{address}</loc></sitemap>"
        for address in (site.url("/a.xml.gz"), site.url("/b.xml.gz"), "http://169.254.169.254/")
    )
    site.replies["/sitemap.xml"] = Reply(f"<sitemapindex>{index}</sitemapindex>".encode())
    tied.tie(site.url("/sitemap.xml"), kind="sitemap")
    assert counts(tied.run()) == (2, 0, 0, 1)
    site.replies["/b.xml.gz"] = Reply(status=500)
    run = tied.run()
    assert counts(run) == (0, 0, 0, 2)
    assert set(tied.found()) == {"a.html", "b.html"}
    assert "500" in refused(run)[site.url("/b.xml.gz")]


def test_sitemap_is_limited_in_pages_and_to_its_own_host(tied: Tied, site: Website) -> None:
    for number in range(7):
        site.page(f"/{number}", f"Page {number}.")
    sitemap(site, *((f"/{number}", "") for number in range(7)))
    body = site.replies["/sitemap.xml"].body
    site.replies["/sitemap.xml"].body = body.replace(
        b"<url>", b"<url><loc>http://a.b/</loc></url><url>", 1
    )
    tied.tie(site.url("/sitemap.xml"), kind="sitemap")
    run = tied.run()
    assert counts(run) == (6, 0, 0, 2)
    assert "at most 6 pages" in refused(run)[site.url("/6")]
    assert "http://a.b/" in refused(run)


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>
<entry><title>Canteen &amp; kitchen</title><link rel="self" href="/x"/><link href="/canteen"/>
<updated>2026-11-01</updated></entry></feed>"""
RSS = """<!DOCTYPE rss PUBLIC "-//N" "http://169.254.169.254/a.dtd"><rss version="2.0"><channel>
<item><title>Leave</title><link>{origin}/leave</link><pubDate>Sun, 01 Nov 2026</pubDate></item>
<item><title>Elsewhere</title><link>http://169.254.169.254/latest</link></item>
<item><guid>{origin}/travel</guid></item></channel></rss>"""


def test_feed_adds_its_entries_and_removes_none(tied: Tied, site: Website) -> None:
    for path in ("/leave", "/travel", "/canteen"):
        site.page(path, f"All about {path}.")
    site.replies["/feed"] = Reply(RSS.format(origin=site.origin).encode())
    tied.tie(site.url("/feed"), kind="feed")
    run = tied.run()
    assert counts(run) == (2, 0, 0, 1)
    assert "http://169.254.169.254/latest" in refused(run)
    assert titles(tied) == {"Leave", "About /travel"}
    site.replies["/feed"] = Reply(ATOM.encode())
    assert counts(tied.run()) == (1, 0, 0, 0)
    assert titles(tied) == {"Leave", "About /travel", "Canteen & kitchen"}
    site.asked()
    tied.run()
    assert site.asked() == ["/feed"]
    # The address of an entry without a link would be that of the feed.
    nowhere = ATOM.replace("<entry>", "<entry><title>Nowhere</title></entry><entry>")
    site.replies["/feed"] = Reply(nowhere.encode())
    run = tied.run()
    assert counts(run) == (0, 0, 0, 1)
    assert "not a web address" in refused(run)["Nowhere"]
    site.replies["/feed"] = Reply(b"<html></html>")
    assert tied.run().failure is not None


def test_entries_are_relative_to_the_nearest_base(tied: Tied, site: Website) -> None:
    for path in ("/news/2026/a", "/news/b", "/old/c", "/news/d"):
        site.page(path, f"All about {path}.")
    feed = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/news/">
    <entry xml:base="2026/"><title>A</title><link href="a"/></entry>
    <entry><title>B</title><link href="b"/></entry>
    <entry><title>C</title><link href="c" xml:base="/old/"/></entry>
    <entry xml:base="http://[no/"><title>D</title><link href="d"/></entry>
    <entry xml:base="http://169.254.169.254/"><title>E</title><link href="latest"/></entry>
    </feed>"""
    site.replies["/feed"] = Reply(feed.encode())
    tied.tie(site.url("/feed"), kind="feed")
    run = tied.run()
    assert counts(run) == (4, 0, 0, 1)
    assert titles(tied) == {"A", "B", "C", "D"}
    assert list(refused(run)) == ["latest"]


def test_file_that_could_not_be_read_waits_until_it_changes(tied: Tied, site: Website) -> None:
    address = site.url("/broken.pdf")
    headers = {"Content-Type": "application/pdf"}
    site.replies["/broken.pdf"] = Reply(b"%PDF-1.4 broken", headers=headers)
    tied.tie(address, kind="pages")
    assert counts(tied.run()) == (1, 0, 0, 0)
    tied.index()
    assert counts(tied.run()) == (0, 0, 0, 0)
    site.replies["/broken.pdf"] = Reply(b"%PDF-1.4 also broken", headers=headers)
    assert counts(tied.run()) == (0, 1, 0, 0)


@pytest.mark.parametrize("kind", ["pages", "sitemap", "feed"])
def test_page_of_an_unsupported_type_is_refused(tied: Tied, site: Website, kind: str) -> None:
    address = site.url("/film.mp4")
    site.replies["/film.mp4"] = Reply(b"\0\0\0 ftypmp42" * 9, headers={"Content-Type": "video/mp4"})
    sitemap(site, ("/film.mp4", ""))
    site.replies["/feed"] = Reply(f"<rss><item><link>{address}</link></item></rss>".encode())
    at = {"pages": address, "sitemap": site.url("/sitemap.xml"), "feed": site.url("/feed")}
    tied.tie(at[kind], kind=kind)
    for _ in range(2):
        listed = tied.run().listed
        assert [(one.path, one.failure and one.failure.code) for one in listed] == [
            (address, "unsupported_format")
        ]


@for_each("kind", ["pages", "sitemap", "feed"])
@for_each("address", ["http://169.254.169.254/", "https://example.org/", "a", ""])
def test_address_that_is_not_allowed_is_refused(tied: Tied, kind: str, address: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tied.tie(address, kind=kind)
    assert address in refused.value.params["reason"]


@pytest.mark.parametrize(
    ("address", "days", "is_known", "reason"),
    [
        ("127.0.0.1", 1, True, None),
        ("127.0.0.1", -1, True, "its certificate has expired"),
        ("127.0.0.2", 1, True, "its certificate is for another host"),
        ("127.0.0.1", 1, False, "its certificate is not from a known authority"),
    ],
)
def test_certificate_is_checked(
    tied: Tied, tmp_path: Path, address: str, days: int, is_known: bool, reason: str | None
) -> None:
    authority = Authority(tmp_path)
    with serve_website(authority.certificate(address, days=days)) as site:
        allowed = {"hosts": (f"127.0.0.1:{site.port}",)}
        if is_known:
            allowed["ca_file"] = authority.path
        services = tied.portal.services
        sources = services.settings.sources.model_copy(update=allowed)
        settings = services.settings.model_copy(update={"sources": sources})
        tied.portal = replace(tied.portal, services=replace(services, settings=settings))
        tied.tie(site.page("/a", "Something."), kind="pages")
        run = tied.run()
        assert counts(run) == ((0, 0, 0, 1) if reason else (1, 0, 0, 0))
        assert bool(site.asked()) == (reason is None)
        if reason:
            assert reason in refused(run)[site.url("/a")]


def test_unknown_kind_is_refused(tied: Tied) -> None:
    with pytest.raises(InvalidInput):
        tied.tie("x", kind="ftp")


def test_host_that_the_operator_no_longer_allows_is_not_asked(
    tied: Tied, site: Website, make_services: Callable[..., Services]
) -> None:
    tied.tie(site.page("/leave", "Twelve days."), kind="pages")
    tied.run()
    site.requests.clear()
    tied.portal = replace(tied.portal, services=make_services())
    run = tied.run()
    assert run.failure is not None
    assert not site.requests
    assert set(tied.found()) == {"leave.html"}


def test_requests_to_a_host_are_spaced_across_workers(services: Services) -> None:
    def turn(host: str) -> float:
        with services.database.begin() as session:
            return source_store.take_turn(session, host, 30)

    assert turn("a.example") == 0
    assert 29 < turn("a.example") <= 30
    assert 59 < turn("a.example") <= 60
    assert turn("b.example") == 0


def test_slow_web_does_not_delay_directories(tied: Tied, site: Website) -> None:
    tied.tie(site.page("/leave", "Twelve days."), kind="pages")
    syncing.sync_due(tied.portal.services, is_web=False)
    assert not site.requests
    syncing.sync_due(tied.portal.services, is_web=True)
    assert site.asked() == ["/leave"]


def test_page_and_api_offer_what_is_allowed(tied: Tied, site: Website) -> None:
    client: FlaskClient = create_app(tied.portal.services).test_client()
    headers = tied.portal.headers(tied.mei)
    at = f"/folders/{tied.folder}/source"
    page = client.get(at, headers=headers | {"Accept-Language": "zh-CN"}).text
    for name, kind in KINDS.items():
        assert (f'value="{name}"' in page) == kind.is_web
        assert str(kind.label) not in page
    form = {"kind": "feed", "address": "http://169.254.169.254/", "every_minutes": "60"}
    failed = client.post(at, headers=headers, data=form)
    assert failed.status_code == 422
    assert "169.254.169.254" in failed.text
    site.replies["/feed"] = Reply(RSS.format(origin=site.origin).encode())
    sent = client.put(
        f"/api{at}", headers=headers, json={"kind": "feed", "address": site.url("/feed")}
    )
    assert sent.status_code == 200, sent.text
    syncing.sync_due(tied.portal.services)
    run = client.get(f"/api{at}", headers=headers).json["last_run"]
    assert {one["reason"] for one in run["listed"] if one["reason"]}
    assert folder_sources.find_source(tied.portal.services, tied.mei, tied.folder) is not None


def test_changing_a_list_keeps_documents_of_its_earlier_owner(tied: Tied, site: Website) -> None:
    services, first = tied.portal.services, site.page("/leave", "Twelve days a year.")
    tied.tie(first, tied.portal.admin, kind="pages")
    tied.run()
    (document,) = tied.found().values()
    tied.tie(site.page("/travel", "Trains are paid for."), kind="pages")
    source = folder_sources.find_source(services, tied.mei, tied.folder)
    assert source is not None
    assert source.owner_name == "mei"
    assert counts(tied.run()) == (1, 0, 0, 0)
    shown = library.list_documents(services, tied.mei).items
    assert {one.id: one.owner_name for one in shown}[document] == "admin"
