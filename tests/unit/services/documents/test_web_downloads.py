"""Which addresses web sources may request, and how much they may download."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpcore
import pytest

from portal.errors import PageGone, PageUnavailable
from portal.services.documents.sources.kinds import SourceContext
from portal.services.documents.sources.web import downloading, pages
from portal.services.documents.sources.web.addresses import CheckedNetwork, check_url, is_allowed
from portal.services.documents.sources.web.downloading import Downloader
from portal.services.documents.sources.web.xml_reading import parse_xml
from portal.settings import Settings
from tests.factories.servers.website import Reply, Website, serve_website

PUBLIC = "93.184.216.34"
NOT_PUBLIC = (
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "fe80::1"),
    *("fe80::1%1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:1::1"),
)


@pytest.fixture
def site() -> Iterator[Website]:
    with serve_website() as site:
        yield site


Downloads = Callable[..., Downloader]


@pytest.fixture
def downloads(site: Website, tmp_path: Path) -> Downloads:
    def make(**sources: Any) -> Downloader:
        allowed = {"hosts": (f"127.0.0.1:{site.port}",), "private_networks": ("127.0.0.0/8",)}
        settings = Settings(
            data_dir=tmp_path, sources={**allowed, "delay_s": 0, **sources}, max_upload_mb=1
        )
        return Downloader(SourceContext(settings, take_turn=lambda *_: 0.0))

    return make


def read(downloader: Downloader, address: str) -> bytes:
    with downloader.get(address) as page:
        assert page is not None
        return page.stream.read()


def refusal(downloader: Downloader, address: str) -> str:
    with pytest.raises(PageUnavailable) as refused:
        read(downloader, address)
    return str(refused.value.params["reason"])


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_allowed(ip_address(address), [])


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:220:1::1", f"::ffff:{PUBLIC}"])
def test_public_address_is_allowed(address: str) -> None:
    assert is_allowed(ip_address(address), [])


def test_operator_allows_private_networks_but_never_link_local_ones() -> None:
    networks = [ip_network("10.1.0.0/16"), ip_network("::1/128"), ip_network("0.0.0.0/0")]
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "::1"):
        assert is_allowed(ip_address(address), networks)
    for address in ("169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"):
        assert not is_allowed(ip_address(address), networks)
    assert not is_allowed(ip_address("10.2.0.1"), networks[:2])


@pytest.mark.parametrize(
    "address",
    [
        *("ftp://docs.example.org/", "file:///etc/passwd", "gopher://docs.example.org/", "docs"),
        *("javascript:alert(1)", "//docs.example.org/", "http:///a", "http://[::1", ""),
        *("https://user@docs.example.org/", "https://user:pass@docs.example.org/"),
        *("https://docs.example.org:8080/", "https://example.org/", "https://a.docs.example.org/"),
        *("https://docs.example.org.evil.net/", "https://evil.net/?docs.example.org"),
        *("https://docs.example.org\\@evil.net/", "https://docs.example.org@evil.net/"),
        "https://docs.example.org/" + "a" * 1000,
    ],
)
def test_address_that_is_not_allowed_is_refused(address: str) -> None:
    settings = Settings(sources={"hosts": "docs.example.org, *.example.net"})
    with pytest.raises(PageUnavailable):
        check_url(settings.sources, address)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254", "[::ffff:10.0.0.1]"])
def test_allowing_any_host_does_not_allow_private_ones(host: str) -> None:
    with pytest.raises(PageUnavailable):
        check_url(Settings(sources={"hosts": "*"}).sources, f"http://{host}/")


def test_addresses_of_allowed_hosts_are_accepted() -> None:
    settings = Settings(sources={"hosts": "docs.example.org,*.example.net,wiki:8080"}).sources
    for address in ("http://docs.example.org/a#b", "https://DOCS.example.org", "http://wiki:8080"):
        assert "#" not in str(check_url(settings, address))
    assert check_url(settings, "https://a.b.example.net/").host == "a.b.example.net"
    with pytest.raises(PageUnavailable):
        check_url(settings, "http://wiki/")
    with pytest.raises(PageUnavailable):
        check_url(Settings().sources, "https://docs.example.org/")


@pytest.mark.parametrize("hosts", ["https://docs.example.org", "docs.*", "a b", "docs:port", "**"])
def test_hosts_that_are_not_names_are_refused(hosts: str) -> None:
    with pytest.raises(ValueError, match="names of hosts"):
        Settings(sources={"hosts": hosts})


class _Sockets(httpcore.MockBackend):
    """Records the hosts of connections."""

    def __init__(self) -> None:
        super().__init__([])
        self.connected: list[str] = []

    def connect_tcp(self, host: str, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        self.connected.append(host)
        return super().connect_tcp(host, *args, **kwargs)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> _Sockets:
    sockets = _Sockets()
    monkeypatch.setattr(httpcore, "SyncBackend", lambda: sockets)
    return sockets


def connect(answers: list[list[str]]) -> None:
    network = CheckedNetwork([], lambda *_: [ip_address(one) for one in answers.pop(0)])
    network.allow(5)
    network.connect_tcp("docs.example.org", 443)


def test_connection_goes_to_the_address_that_was_checked(sockets: _Sockets) -> None:
    """A name is resolved once, in case it leads into the private network the second time."""
    answers = [[PUBLIC], ["127.0.0.1"]]
    connect(answers)
    assert sockets.connected == [PUBLIC]
    assert answers == [["127.0.0.1"]]
    with pytest.raises(PageUnavailable):
        connect(answers)
    assert sockets.connected == [PUBLIC]


@pytest.mark.parametrize("resolved", [[], ["10.0.0.1"], [PUBLIC, "127.0.0.1"], [PUBLIC, "::1"]])
def test_host_with_an_address_that_is_not_public_is_refused(
    sockets: _Sockets, resolved: list[str]
) -> None:
    with pytest.raises(PageUnavailable):
        connect([resolved])
    assert not sockets.connected


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0", "localhost"])
def test_other_spellings_of_this_machine_are_refused(
    site: Website, downloads: Downloads, host: str
) -> None:
    downloader = downloads(hosts=f"*:{site.port}", private_networks=())
    assert "not public" in refusal(downloader, f"http://{host}:{site.port}/")
    assert not site.requests


def test_unknown_host_looks_like_a_private_one(tmp_path: Path) -> None:
    def resolve(host: str, port: int) -> Any:
        if host == "unknown":
            raise socket.gaierror
        return [ip_address("10.0.0.1")]

    settings = Settings(data_dir=tmp_path, sources={"hosts": "*", "delay_s": 0})
    context = SourceContext(settings, lambda *_: 0.0)
    reasons = {
        refusal(Downloader(context, resolve=resolve), f"http://{host}/")
        for host in ("unknown", "wiki")
    }
    assert len(reasons) == 1


def test_redirects_are_followed_where_the_target_is_allowed(
    site: Website, downloads: Downloads
) -> None:
    site.page("/new", "Here it is.")
    site.replies["/old"] = Reply(status=301, headers={"Location": "new"})
    assert b"Here it is." in read(downloads(), site.url("/old"))


@pytest.mark.parametrize(
    "target",
    [
        *("http://169.254.169.254/latest/meta-data", "http://localhost/", "file:///etc/passwd"),
        *(
            "http://evil.example/",
            "http://user:pass@127.0.0.1/",
            "ftp://127.0.0.1/",
            "http://[::1]/",
        ),
        "/secret",
    ],
)
def test_redirect_to_an_address_that_is_not_allowed_is_refused(
    site: Website, downloads: Downloads, target: str
) -> None:
    site.replies["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /secret")
    site.page("/secret", "Not for programs.")
    site.replies["/start"] = Reply(status=302, headers={"Location": target})
    refusal(downloads(), site.url("/start"))
    assert site.asked() == ["/start"]


def test_number_of_redirects_is_limited(site: Website, downloads: Downloads) -> None:
    site.replies["/loop"] = Reply(status=307, headers={"Location": "/loop"})
    assert "redirected more than" in refusal(downloads(), site.url("/loop"))
    assert len(site.asked()) == 6


def test_robots_txt_is_respected(site: Website, downloads: Downloads) -> None:
    site.page("/open", "Open.")
    site.page("/closed/page", "Closed.")
    site.replies["/robots.txt"] = Reply(
        b"User-agent: *\nDisallow: /\n\nUser-agent: KnowledgePortal\nDisallow: /closed/*\n"
        b"Disallow: /*.pdf$\nCrawl-delay: 7"
    )
    turns: list[float] = []
    downloader = downloads()
    downloader._context = SourceContext(
        downloader._context.settings, lambda _, delay_s: turns.append(delay_s) or 0.0
    )
    read(downloader, site.url("/open"))
    for path in ("/closed/page", "/a.pdf"):
        assert "robots.txt" in refusal(downloader, site.url(path))
    assert site.asked() == ["/open"]
    assert turns == [0, 7]


@pytest.mark.parametrize(("status", "may_read"), [(404, True), (403, True), (500, False)])
def test_missing_robots_txt_allows_and_failing_one_forbids(
    site: Website, downloads: Downloads, status: int, may_read: bool
) -> None:
    site.page("/page", "Words.")
    site.replies["/robots.txt"] = Reply(status=status)
    if may_read:
        read(downloads(), site.url("/page"))
    else:
        assert "robots.txt" in refusal(downloads(), site.url("/page"))


def test_large_pages_are_refused(site: Website, downloads: Downloads) -> None:
    body = b"x" * (1024 * 1024 + 1)
    site.replies["/large"] = Reply(body)
    site.replies["/says"] = Reply(headers={"Content-Length": str(10**12)})
    for path in ("/large", "/says"):
        assert "larger than 1 MB" in refusal(downloads(), site.url(path))


def test_packed_page_is_unpacked_within_the_limit(site: Website, downloads: Downloads) -> None:
    packed = {"Content-Encoding": "gzip"}
    site.replies["/small"] = Reply(gzip.compress(b"words " * 9000), headers=packed)
    assert read(downloads(), site.url("/small")) == b"words " * 9000
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    site.replies["/bomb"] = Reply(bomb, headers=packed)
    assert "larger than" in refusal(downloads(), site.url("/bomb"))
    site.replies["/twice"] = Reply(gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"})
    assert "encoding" in refusal(downloads(), site.url("/twice"))
    site.replies["/cut"] = Reply(gzip.compress(b"words")[:-9], headers=packed)
    assert "damaged" in refusal(downloads(), site.url("/cut"))


def test_unpacking_keeps_pieces_small() -> None:
    pieces = downloading.inflate([gzip.compress(b"\0" * 5_000_000)])
    assert max(len(piece) for piece in pieces) <= 64 * 1024


@pytest.mark.parametrize("path", ["/drip", "/robots.txt"])
def test_slow_server_is_abandoned(site: Website, downloads: Downloads, path: str) -> None:
    """A byte now and then would keep the timeout of a single read from ever expiring."""
    site.replies[path] = Reply(every_s=0.1)
    assert "took longer than 1 s" in refusal(downloads(timeout_s=1), site.url("/drip"))


def test_response_with_slow_headers_is_abandoned(downloads: Downloads) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    assert "took longer" in refusal(
        downloads(timeout_s=1, hosts=(f"127.0.0.1:{port}",)), f"http://127.0.0.1:{port}/"
    )
    server.close()


def test_server_that_fails_is_not_asked_again(site: Website, downloads: Downloads) -> None:
    downloader = downloads()
    site.replies["/busy"] = Reply(status=503)
    assert "503" in refusal(downloader, site.url("/busy"))
    assert "too busy" in refusal(downloader, site.url("/other"))
    assert site.asked() == ["/busy"]


def test_pages_and_bytes_of_a_host_are_limited_per_run(site: Website, downloads: Downloads) -> None:
    for number in range(3):
        site.replies[f"/{number}"] = Reply(b"x" * 700_000)
    downloader = downloads(max_pages=3)
    for number in range(2):
        read(downloader, site.url(f"/{number}"))
    read(downloader, site.url("/2"))
    assert "3 pages" in refusal(downloader, site.url("/3"))
    downloader = downloads(max_mb=1)
    read(downloader, site.url("/0"))
    assert "1 MB from a server" in refusal(downloader, site.url("/1"))


def test_page_that_is_gone_is_distinguished_from_one_that_fails(
    site: Website, downloads: Downloads
) -> None:
    site.replies["/gone"] = Reply(status=410)
    with pytest.raises(PageGone):
        read(downloads(), site.url("/gone"))
    assert "404" in refusal(downloads(), site.url("/missing"))


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE a [<!ENTITY b "b">]><a>&b;</a>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        "<a><b></a>",
        "not XML",
        "<a>" + "<b/>" * 600_001 + "</a>",
    ],
)
def test_hostile_xml_is_refused(xml: str) -> None:
    with pytest.raises(PageUnavailable):
        parse_xml(xml.encode())


def test_feed_in_a_chinese_encoding_is_read() -> None:
    xml = '<?xml version="1.0" encoding="GB2312"?><rss><title>合同</title></rss>'
    root = parse_xml(xml.encode("gb2312"))
    assert root.findtext("title") == "合同"


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/", "text/html; charset=utf-8", "docs.example.org.html"),
        ("/guide/", "text/html", "guide.html"),
        ("/a.HTM", "text/html", "a.HTM"),
        ("/page.php", "text/html", "page.php.html"),
        ("/%E5%90%88%E5%90%8C", "application/pdf", "合同.pdf"),
        ("/a.docx", "application/octet-stream", "a.docx"),
    ],
)
def test_file_name_has_the_suffix_of_its_type(path: str, kind: str, name: str) -> None:
    settings = Settings(sources={"hosts": "*"}).sources
    url = check_url(settings, f"https://docs.example.org{path}")
    assert pages.file_name(url, kind) == name


def test_hidden_parts_of_a_page_are_not_compared() -> None:
    page = b"<p class=%d>Words</p><script nonce=%d>a=%d</script><!-- at %d --><style>%d</style>end"
    assert pages._shown(page % ((1,) * 5)) != pages._shown(page % ((2,) * 5))  # Attributes stay.
    shown = {pages._TAG.sub(b"", pages._shown(page % ((number,) * 5))) for number in range(3)}
    assert shown == {b"Wordsend"}
