"""The list of documents, live updates of its rows, and actions on documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from flask import make_response, render_template, request, url_for
from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response

from portal.domain.documents import (
    TYPES,
    DocumentFilter,
    DocumentSort,
    DocumentStatus,
    DocumentSummary,
    Visibility,
)
from portal.domain.documents.jobs import Job
from portal.errors import N_, Forbidden, NotFound
from portal.http import context
from portal.services.documents import folders, library, switches
from portal.services.documents.ingestion import jobs
from portal.web.blueprint import PageBlueprint
from portal.web.documents.folders.forms import tree_values
from portal.web.documents.selection import rows_switches
from portal.web.layout import (
    Answer,
    fragments,
    remember,
    removal_fragment,
    see_other,
    toast,
    wants_fragment,
)
from portal.web.people.notifications import new_bell
from portal.web.presenters import STATUS_WORDS
from portal.web.security import referring_path
from portal.web.shown_rows import append_rows, rows_limit, shown_values

PAGE_SIZE = 50
# Rows polled in one request, once a second: the oldest ones, which are processed first.
WATCH_LIMIT = 20
ACTIVE = frozenset({DocumentStatus.QUEUED, DocumentStatus.PROCESSING})
VISIBILITY_WORDS = {Visibility.SHARED: N_("Everyone"), Visibility.PRIVATE: N_("Private")}
SORT_WORDS = {
    DocumentSort.NEWEST: N_("Newest first"),
    DocumentSort.OLDEST: N_("Oldest first"),
    DocumentSort.TITLE: N_("Title, A to Z"),
    DocumentSort.TITLE_DESCENDING: N_("Title, Z to A"),
    DocumentSort.LARGEST: N_("Largest first"),
    DocumentSort.SMALLEST: N_("Smallest first"),
    DocumentSort.TYPE: N_("Type"),
    DocumentSort.STATUS: N_("Status"),
    DocumentSort.OWNER: N_("Owner"),
}

blueprint = PageBlueprint("documents", __name__)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The filters and the order in the address of the list."""

    text: str = ""
    status: DocumentStatus | None = None
    type_name: str = ""
    domain: str = ""
    owner_id: UUID | None = None
    visibility: Visibility | None = None
    folder_id: UUID | None = None
    is_unfiled: bool = False
    tag: str = ""
    sort: DocumentSort = DocumentSort.NEWEST

    @property
    def is_filtered(self) -> bool:
        place = DocumentFilter(folder_id=self.folder_id, is_unfiled=self.is_unfiled)
        return self.filters != place

    @property
    def has_rare_filters(self) -> bool:
        """Return whether one of the filters that are hidden by default is set."""
        return bool(self.domain or self.owner_id or self.visibility or self.tag)

    @property
    def place(self) -> str | None:
        """Return the folder as the address has it: an id, `none`, or None for all."""
        if self.is_unfiled:
            return "none"
        return str(self.folder_id) if self.folder_id else None

    @property
    def filters(self) -> DocumentFilter:
        return DocumentFilter(
            status=self.status,
            media_type=TYPES.get(self.type_name),
            domain=self.domain or None,
            title_contains=self.text or None,
            owner_id=self.owner_id,
            visibility=self.visibility,
            folder_id=self.folder_id,
            is_unfiled=self.is_unfiled,
            tag=self.tag or None,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the values that are set, as arguments of the list's address."""
        arguments = {
            "q": self.text,
            "status": self.status,
            "type": self.type_name,
            "domain": self.domain,
            "owner": self.owner_id,
            "visibility": self.visibility,
            "folder": self.place,
            "tag": self.tag,
            "sort": None if self.sort is DocumentSort.NEWEST else self.sort,
        }
        return {name: str(value) for name, value in arguments.items() if value}


def list_query(values: MultiDict[str, str] | None = None) -> ListQuery:
    """Return the filters of the request, or of `values`; unknown ones are ignored."""
    arguments = request.values if values is None else values
    type_name = arguments.get("type", "")
    return ListQuery(
        text=arguments.get("q", "").strip(),
        status=arguments.get("status", type=DocumentStatus),
        type_name=type_name if type_name in TYPES else "",
        domain=arguments.get("domain", "").strip(),
        owner_id=arguments.get("owner", type=UUID),
        visibility=arguments.get("visibility", type=Visibility),
        folder_id=arguments.get("folder", type=UUID),
        is_unfiled=arguments.get("folder") == "none",
        tag=arguments.get("tag", "").strip(),
        sort=arguments.get("sort", DocumentSort.NEWEST, type=DocumentSort),
    )


def list_values(query: ListQuery | None = None, **more: Any) -> dict[str, Any]:
    """Return the template values of the list; the query defaults to that of the request."""
    query = query or list_query()
    page = library.list_documents(
        *context.caller(),
        filters=query.filters,
        sort=query.sort,
        cursor=request.args.get("cursor") or None,
        limit=rows_limit(PAGE_SIZE),
    )
    return {
        "page": page,
        **shown_values(len(page.items)),
        "switches": rows_switches([item.id for item in page.items]),
        "jobs": _jobs_of(page.items),
        "failed_count": jobs.count_curable(*context.caller()),
        "query": query,
        "is_active": any(item.status in ACTIVE for item in page.items),
        "max_upload_mb": context.services().settings.max_upload_mb,
        **more,
    }


def page_values(query: ListQuery | None = None, **more: Any) -> dict[str, Any]:
    """Return the template values of the whole page: the list, the choices of its filters and the
    folder tree. Raises NotFound for a folder that the user may not see."""
    query = query or list_query()
    folder_id = query.folder_id
    opened = folders.get_folder(*context.caller(), folder_id) if folder_id else None
    return {
        **list_values(query),
        **tree_values(opened),
        "opened": opened,
        "folder_switch": switches.get_folder_switch(*context.caller(), folder_id)
        if folder_id
        else None,
        "folders_off": switches.find_folders_off(*context.caller()),
        "choices": {
            "status": [(one, gettext(STATUS_WORDS[one])) for one in DocumentStatus],
            "type": _type_choices(query),
            "sort": [(one, gettext(words)) for one, words in SORT_WORDS.items()],
        },
        "more_choices": _list_more_choices()
        if query.has_rare_filters or "more" in request.args
        else {},
        **more,
    }


def _type_choices(query: ListQuery) -> list[tuple[str, str]]:
    """Return the types that the user has documents of, and the chosen one."""
    found = library.list_types(*context.caller())
    chosen = query.filters.media_type
    return [(name, one.short) for name, one in TYPES.items() if one in found or one is chosen]


def _list_more_choices() -> dict[str, Any]:
    """Return the choices of the hidden filters. They are read from the documents and may be many,
    so they are loaded only on demand."""
    tags = library.list_tags(*context.caller())
    return {
        "visibility": [(one, gettext(words)) for one, words in VISIBILITY_WORDS.items()],
        "tag": [(name, f"{name} ({count})") for name, count in tags],
        "domain": [(one, one) for one in library.list_domains(*context.caller())],
        "owner": library.list_owners(*context.caller()),
    }


@blueprint.get("/documents")
def index() -> Answer:
    query = list_query()
    if wants_fragment("more-filters"):
        return render_template(
            "fragments/documents/_more_filters.html",
            query=query,
            more_choices=_list_more_choices(),
            is_opened=True,
        )
    if wants_fragment("folder-tree"):
        values = page_values(query)
        return fragments(("fragments/folders/_tree.html", values), *_upload_places(values))
    if not wants_fragment("document-results") and not wants_fragment("load-more"):
        return render_template("pages/documents/documents.html", **page_values(query))
    # A refresh follows an upload, which may have created folders.
    is_refresh = "X-Refresh" in request.headers
    values = page_values(query) if is_refresh else list_values(query)
    if wants_fragment("document-results"):
        beside = {**values, "out_of_band": True}
        response = make_response(
            fragments(
                ("fragments/documents/_results.html", values),
                ("fragments/documents/_progress.html", beside),
                *(_beside_the_list(beside) if is_refresh else []),
            )
        )
        # An automatic refresh must not change the address.
        if not is_refresh:
            # Use the shortest address of this list, without empty filters.
            address = url_for("documents.index", **query.arguments())
            response.headers["HX-Push-Url"] = address
        return response
    rows = fragments(
        ("fragments/documents/_rows.html", values),
        *([progress_line()] if values["is_active"] else []),
    )
    return append_rows(rows, len(values["page"].items))


@blueprint.get("/documents/progress")
def progress() -> Answer:
    """Return changed rows, progress, and the bell if a job has ended. The fragment polls again
    while a watched document is being processed."""
    watched = dict(_watched())
    found = library.list_summaries(*context.caller(), list(watched))
    documents = {document.id: document for document in found}
    moved = [one for one in found if one.status != watched[one.id]]
    active = [one for one in found if one.status in ACTIVE]
    has_ended = any(one.status not in ACTIVE for one in moved)
    changed = [
        *(removal_fragment(f"document-{one}") for one in watched if one not in documents),
        *rows(moved, keeps_line=True),
    ]
    poller = ("fragments/documents/_progress.html", {"is_active": bool(active)})
    ending = [retry_failed_button(), *new_bell()] if has_ended else []
    return fragments(poller, *changed, *_stages(active), *ending)


def _stages(active: list[DocumentSummary]) -> Iterator[tuple[str, dict[str, Any]]]:
    found = _jobs_of(active)
    for document in active:
        values = {"document": document, "job": found.get(document.id)}
        yield "fragments/documents/_job_progress.html", values


@blueprint.get("/documents/<uuid:document_id>/delete")
def confirm_delete(document_id: UUID) -> Answer:
    document = library.get_summary(*context.caller(), document_id)
    if not document.can_edit:
        raise Forbidden
    values = {
        "document": document,
        "in_list": wants_fragment() and "in_list" in request.args,
        "trash_days": context.services().settings.trash_days,
    }
    if wants_fragment():
        return render_template("fragments/documents/_confirm_delete.html", **values)
    return render_template("pages/documents/confirm_delete.html", **values)


@blueprint.post("/documents/<uuid:document_id>/delete")
def delete(document_id: UUID) -> Answer:
    services, user = context.caller()
    document = library.get_summary(services, user, document_id)
    library.delete_document(services, user, document_id)
    message = gettext("“%(title)s” is in the trash.", title=document.title)
    undo = url_for("trash.restore", document_id=document_id)
    if wants_fragment() and "in_list" in request.form:
        note = toast(message, kind="success", undo=undo)
        return fragments(removal_fragment(f"document-{document_id}"), note, total())
    remember(message, kind="success", undo=undo)
    after = url_for("documents.index", folder=document.folder_id)
    if wants_fragment():
        return Response("", headers={"HX-Redirect": after})
    return see_other(after)


def row(document: DocumentSummary, **more: Any) -> tuple[str, dict[str, Any]]:
    values = {"switches": rows_switches([document.id]), "jobs": _jobs_of([document])}
    return "fragments/documents/_row.html", {"document": document, **values, **more}


def rows(documents: Sequence[DocumentSummary], **more: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows that replace the ones on the page."""
    if not documents:
        return
    values = {
        "switches": rows_switches([document.id for document in documents]),
        "jobs": _jobs_of(documents),
        "out_of_band": True,
        **more,
    }
    for document in documents:
        yield "fragments/documents/_row.html", {"document": document, **values}


def _beside_the_list(values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fragments beside the list that an upload may have changed."""
    yield "fragments/folders/_tree.html", values
    yield "fragments/documents/_type_filter.html", values
    yield from _upload_places(values)


def _upload_places(values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the folders to upload into, if the page has a form for that."""
    opened = values["opened"]
    if opened is None or opened.folder.can_add:
        yield "fragments/uploads/_into.html", {**values, "out_of_band": True}


def _jobs_of(documents: Iterable[DocumentSummary]) -> dict[UUID, Job]:
    """Return the jobs of the documents that are queued or being processed."""
    job_ids = [item.job_id for item in documents if item.status in ACTIVE and item.job_id]
    return jobs.newest_jobs(context.services(), job_ids)


def total() -> tuple[str, dict[str, Any]]:
    """Return the count above the list on the page, for responses that change it."""
    address = urlsplit(referring_path() or "")
    is_list = address.path == url_for("documents.index")
    query = list_query(MultiDict(parse_qsl(address.query) if is_list else ()))
    try:
        page = library.list_documents(*context.caller(), filters=query.filters, limit=1)
    except NotFound:
        # Its folder was deleted while the page was open.
        query = ListQuery()
        page = library.list_documents(*context.caller(), limit=1)
    is_filtered = query.is_filtered
    values = {"total_count": page.total_count, "is_filtered": is_filtered, "out_of_band": True}
    return "fragments/documents/_count.html", values


def progress_line() -> tuple[str, dict[str, Any]]:
    return "fragments/documents/_progress.html", {"is_active": True, "out_of_band": True}


def retry_failed_button() -> tuple[str, dict[str, Any]]:
    """Return the retry button, for responses that change how many documents have failed."""
    failed_count = jobs.count_curable(*context.caller())
    values = {"failed_count": failed_count, "out_of_band": True}
    return "fragments/documents/_retry_failed.html", values


def _watched() -> list[tuple[UUID, str]]:
    """Return pairs of a document's id and the status that the page shows, from values such as
    ``<id>.queued``."""
    watched = []
    for value in request.args.getlist("watch")[-WATCH_LIMIT:]:
        identifier, _, status = value.partition(".")
        try:
            watched.append((UUID(identifier), status))
        except ValueError:
            continue
    return watched
