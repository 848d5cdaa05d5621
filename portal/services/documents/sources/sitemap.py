"""A sitemap, or an index of sitemaps (sitemaps.org), with the pages of the same host."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote

import httpx

from portal.domain.documents.sources import Listing, SourceItem
from portal.errors import N_, PageUnavailable, PortalError, SourceUnavailable
from portal.services.documents.sources.kinds import SourceKind
from portal.services.documents.sources.web.addresses import allowed_hosts, check_url
from portal.services.documents.sources.web.pages import PageListSource
from portal.services.documents.sources.web.xml_reading import children, read_xml, text_of

_MAX_SITEMAPS = 50
_MAX_LEVELS = 2
_MAX_FOLDERS = 4


class Sitemap(PageListSource):
    """The pages of a sitemap, in folders named after the paths of their addresses."""

    def list_items(self) -> Listing:
        """Return the pages. A part that cannot be read makes the listing incomplete. Raises
        SourceUnavailable if the sitemap itself cannot be read."""
        found = _Found(self)
        try:
            found.read(str(self.url), level=0)
        except PageUnavailable as error:
            raise SourceUnavailable(error.reason) from error
        return Listing(
            list(found.items.values()), refused=found.refused, is_complete=found.is_complete
        )


@dataclass
class _Found:
    source: Sitemap
    items: dict[str, SourceItem] = field(default_factory=dict)
    refused: list[tuple[str, PortalError]] = field(default_factory=list)
    is_complete: bool = True
    sitemaps: int = 0

    def read(self, address: str, *, level: int) -> None:
        """Add the pages of a sitemap, and of the sitemaps that it lists. Raises PageUnavailable."""
        self.sitemaps += 1
        if self.sitemaps > _MAX_SITEMAPS or level > _MAX_LEVELS:
            raise PageUnavailable("at most %(max)s sitemaps are read", max=_MAX_SITEMAPS)
        root = read_xml(self.source.downloader, address)
        for entry in children(root, "sitemap"):
            self._read_listed(text_of(entry, "loc"), level + 1)
        for entry in children(root, "url"):
            if not self._add(text_of(entry, "loc"), text_of(entry, "lastmod")):
                return

    def _read_listed(self, address: str, level: int) -> None:
        try:
            self._check(address)
            self.read(address, level=level)
        except PageUnavailable as error:
            self.is_complete = False
            self.refused.append((address, error))

    def _add(self, address: str, changed: str) -> bool:
        """Add a page; return whether there is room for more."""
        try:
            url = self._check(address)
        except PageUnavailable as error:
            self.refused.append((address, error))
            return True
        if len(self.items) >= self.source.settings.max_pages and str(url) not in self.items:
            self.is_complete = False
            reason = N_("one source has at most %(max)s pages", max=self.source.settings.max_pages)
            self.refused.append((str(url), PageUnavailable(reason)))
            return False
        self.items[str(url)] = SourceItem(str(url), changed, _folders(url))
        return True

    def _check(self, address: str) -> httpx.URL:
        url = check_url(self.source.settings, address)
        if url.host != self.source.url.host:
            raise PageUnavailable("it is on another host than its sitemap")
        return url


def _folders(url: httpx.URL) -> str:
    return "/".join(unquote(part) for part in PurePosixPath(url.path).parts[1:-1][:_MAX_FOLDERS])


KIND = SourceKind(
    name="sitemap",
    label=N_("A sitemap"),
    hint=N_(
        "The address of a sitemap, such as https://example.org/sitemap.xml, on these hosts: "
        "%(list)s"
    ),
    open=Sitemap.at,
    allowed=allowed_hosts,
    is_web=True,
)
