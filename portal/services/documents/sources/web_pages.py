"""A list of web pages, one address per line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.domain.documents.sources import Listing, SourceItem
from portal.errors import N_, InvalidInput
from portal.services.documents.sources.kinds import SourceContext, SourceKind
from portal.services.documents.sources.web.addresses import allowed_hosts, check_source
from portal.services.documents.sources.web.downloading import Downloader
from portal.services.documents.sources.web.pages import PageSource


@dataclass(frozen=True, slots=True)
class WebPages(PageSource):
    """Pages that are listed by hand. A page that cannot be read is refused; the others are read."""

    urls: Sequence[str]

    def list_items(self) -> Listing:
        return Listing([SourceItem(url) for url in self.urls])


def open_web_pages(context: SourceContext, address: str) -> WebPages:
    """Return the pages of a list. Raises InvalidInput for the first line that is not allowed."""
    urls: dict[str, None] = {}
    for line in filter(None, (line.strip() for line in address.splitlines())):
        urls[str(check_source(context.settings.sources, line))] = None
    if not 1 <= len(urls) <= context.settings.sources.max_pages:
        raise InvalidInput(
            "a list has 1 to %(max)s pages, each on a separate line",
            max=context.settings.sources.max_pages,
        )
    return WebPages(Downloader(context), list(urls))


KIND = SourceKind(
    name="pages",
    label=N_("Web pages"),
    hint=N_("Addresses of pages, one on a line, on these hosts: %(list)s"),
    open=open_web_pages,
    allowed=allowed_hosts,
    is_web=True,
    is_list=True,
)
