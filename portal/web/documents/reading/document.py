"""Pages of one document: its text in chunks, its details, its original file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import ceil
from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.domain.conversations import Citation, CitedIn, SourceState
from portal.domain.documents import DocumentDetail, StoredChunk, Visibility
from portal.domain.documents.bulk import BulkTarget
from portal.domain.documents.folders import Folder
from portal.domain.documents.jobs import UNFINISHED
from portal.domain.documents.structure import BlockKind
from portal.domain.people.audit import AuditEntry, AuditEvent
from portal.errors import N_, Conflict, InvalidInput, NotFound, PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.services.answers import citing
from portal.services.documents import folders, library, private_reads
from portal.services.documents.folders import members as folder_members
from portal.services.documents.ingestion import jobs, rereading
from portal.services.documents.reading import showing
from portal.services.documents.versions import revisions
from portal.text.terms.highlight import MAX_MATCHES
from portal.text.titles import split_tags
from portal.web.blueprint import PageBlueprint
from portal.web.documents.bulk import ask_to_move
from portal.web.documents.folders.forms import parse_id
from portal.web.documents.listing import ACTIVE
from portal.web.documents.reading.focus import Focus, cited_focus, find_focus, positive
from portal.web.documents.reading.originals import file_answer
from portal.web.documents.reading.page_views import pages_view, wants_pages
from portal.web.documents.reading.structured import chunk_pieces
from portal.web.layout import Answer, fragments, see_other, wants_fragment
from portal.web.people.notifications import new_bell

CHUNKS_PER_PAGE = 20
# How many chunks above a citation open with it; the rest is a click away.
_CHUNKS_BEFORE = 1
_REVISIONS_SHOWN = 10
_MAX_CITED = 100
_MAX_OUTLINE = 400

READ_WORDS = {
    AuditEvent.PRIVATE_DOCUMENT_OPENED.value: N_("Opened"),
    AuditEvent.PRIVATE_DOCUMENT_FOUND.value: N_("Found by a search"),
}

blueprint = PageBlueprint("reading", __name__, "/documents")


@blueprint.get("/<uuid:document_id>")
def show(document_id: UUID) -> Answer:
    try:
        detail = library.get_document(*context.caller(), document_id)
    except NotFound:
        if wants_fragment():
            raise
        # Raises NotFound again unless the user may restore it.
        trashed = library.get_summary(*context.caller(), document_id, deleted=True)
        page = render_template("pages/documents/in_trash.html", document=trashed)
        return page, NotFound.status
    if wants_fragment("document-state"):
        state = _state(detail)
        ending = [] if state["is_active"] else new_bell()
        return fragments(("fragments/reading/_state.html", state), *ending)
    if wants_fragment("text-above") or wants_fragment("text-below"):
        focus, part = find_focus(detail), positive(request.args.get("part"))
        before = positive(request.args.get("before"), otherwise=0) or None
        values = text_values(detail, focus, (part - 1) * CHUNKS_PER_PAGE, before)
        return render_template("fragments/reading/_text.html", **values)
    return render_template("pages/documents/document.html", **_page_values(detail))


@blueprint.get("/<uuid:document_id>/file")
def original_file(document_id: UUID) -> Answer:
    """Send the original file; browsers show it inline if that is safe."""
    services, user = context.caller()
    detail = library.get_document(services, user, document_id)
    stored = library.open_file(services, user, document_id)
    return file_answer(stored, encoding=detail.encoding)


@blueprint.post("/<uuid:document_id>/edit")
def edit(document_id: UUID) -> Answer:
    services, user = context.caller()
    try:
        title = request.form.get("title", "").strip()
        if not title:
            raise InvalidInput("enter a title")
        library.change_document(
            services,
            user,
            document_id,
            title=title,
            domain=request.form.get("domain", "").strip(),
            tags=split_tags(request.form["tags"]) if "tags" in request.form else None,
            visibility=request.form.get("visibility", type=Visibility),
        )
        before = library.get_summary(services, user, document_id).folder_id
        folder_id = parse_id(request.form.get("folder_id", str(before or "")))
        # A folder that the user may not see is not in the form; saving must not move it out.
        if folder_id != before:
            target = BulkTarget((document_id,))
            access_change = folder_members.preview_move(services, user, target, folder_id)
            if access_change.matters and request.form.get("seen") != access_change.digest:
                return ask_to_move(document_id, folder_id, access_change)
            folders.move_document(services, user, document_id, folder_id)
    except InvalidInput as error:
        return page_with_error(document_id, error, "edit_error")
    return see_other(url_for("reading.show", document_id=document_id), gettext("Saved."))


@blueprint.get("/<uuid:document_id>/move")
def preview_move(document_id: UUID) -> Answer:
    """Show who gains and loses access to a document by a move to the chosen folder."""
    services, user = context.caller()
    library.get_summary(services, user, document_id)
    folder_id = parse_id(request.args.get("folder_id"))
    target = BulkTarget((document_id,))
    access_change = folder_members.preview_move(services, user, target, folder_id)
    return render_template("fragments/reading/_access_change.html", access_change=access_change)


@blueprint.post("/<uuid:document_id>/reindex")
def reindex(document_id: UUID) -> Answer:
    """Read the file again, in the chosen encoding."""
    services, user = context.caller()
    encoding = request.form.get("encoding", "") or None
    try:
        rereading.reread(services, user, document_id, encoding=encoding)
    except (InvalidInput, Conflict) as error:
        return page_with_error(document_id, error, "reindex_error")
    return see_other(
        url_for("reading.show", document_id=document_id),
        gettext("The document is being read again."),
    )


def _state(detail: DocumentDetail) -> dict[str, Any]:
    document = detail.summary
    job_ids = [document.job_id] if document.job_id else []
    job = jobs.newest_jobs(context.services(), job_ids).get(document.id)
    # A document stays ready while it is read again.
    is_read_again = job is not None and job.status in UNFINISHED
    return {
        "detail": detail,
        "document": document,
        "job": job,
        "unread": revisions.find_unread(*context.caller(), document.id),
        "has_ended": wants_fragment(),
        "is_active": document.status in ACTIVE or is_read_again,
    }


def page_with_error(document_id: UUID, error: PortalError, name: str) -> Answer:
    """Return the page with an error; `name` is the template value that shows it."""
    values = _page_values(library.get_document(*context.caller(), document_id))
    values[name] = error_message(error)
    if name == "edit_error":
        values["edited"] = request.form
    return render_template("pages/documents/document.html", **values), error.status


def _page_values(detail: DocumentDetail) -> dict[str, Any]:
    services, user = context.caller()
    document_id = detail.summary.id
    focus, part = find_focus(detail), positive(request.args.get("part"))

    def address(**values: Any) -> str:
        arguments: dict[str, Any] = _focus_arguments() | values
        return url_for("reading.show", document_id=document_id, **arguments)

    view, why_text = None, None
    if wants_pages(detail, focus):
        view, why_text = pages_view(detail, focus, address)
    if focus.chunk is not None and view is None:
        before = library.count_chunks_before(services, user, document_id, focus.chunk)
        part = before // CHUNKS_PER_PAGE + 1
    if view is None:
        text = text_values(detail, focus, (part - 1) * CHUNKS_PER_PAGE)
    else:
        text = {"focus": focus, "document": detail.summary, **_citations(document_id)}
    return {
        **_state(detail),
        **text,
        "path": _path(detail.summary.folder_id),
        "view": view,
        "why_text": why_text,
        "has_pages": showing.has_pages(detail.summary.media_type),
        "address": address,
        "headings": library.list_headings(services, user, document_id, limit=_MAX_OUTLINE),
        "max_matches": MAX_MATCHES,
        "query": focus.query,
        "visibilities": tuple(Visibility),
        "private_reads": _private_reads(detail),
        "read_words": READ_WORDS,
        "paths": folders.list_paths_to_add(services, user, also=detail.summary.folder_id)
        if detail.summary.can_edit
        else [],
        "encodings": rereading.ENCODINGS,
        "revision_page": revisions.list_revisions(
            services, user, document_id, limit=_REVISIONS_SHOWN
        ),
    }


def _path(folder_id: UUID | None) -> tuple[Folder, ...]:
    """Return the folders that contain a document, from the top."""
    if folder_id is None:
        return ()
    opened = folders.get_folder(*context.caller(), folder_id)
    return (*opened.above, opened.folder)


def _private_reads(detail: DocumentDetail) -> list[AuditEntry]:
    """Return administrators' reads of a private document, for its owner and the folder's
    keepers."""
    services, user = context.caller()
    if not private_reads.may_see_reads(user, detail.summary):
        return []
    return private_reads.list_reads(services, user, detail.summary.id)


def _focus_arguments() -> dict[str, str]:
    """Return the values of this address that say what to show, not how."""
    names = ("citation", "conversation", "chunk", "q", "find", "match", "at")
    return {name: request.args[name] for name in names if request.args.get(name)}


def text_values(
    detail: DocumentDetail, focus: Focus, start: int, end: int | None = None
) -> dict[str, Any]:
    """Return the template values of the text from chunk `start` to `end`, by default to the end of
    a part."""
    part = start // CHUNKS_PER_PAGE + 1
    end = min(end or part * CHUNKS_PER_PAGE, part * CHUNKS_PER_PAGE)
    chunks, total_count = library.list_chunks(
        *context.caller(), detail.summary.id, limit=max(0, end - start), offset=start
    )
    citations = _citations(detail.summary.id)
    return {
        "document": detail.summary,
        **citations,
        "cited_in": {stored.id: _citing(stored, citations["cited"]) for stored in chunks},
        "chunks": chunks,
        "chunk_pieces": partial(chunk_pieces, image_sizes=_image_sizes(detail, chunks)),
        "start": start,
        "part": part,
        "part_size": CHUNKS_PER_PAGE,
        "part_count": max(1, ceil(total_count / CHUNKS_PER_PAGE)),
        "focus": focus,
        "focus_id": focus.chunk.id if focus.chunk else None,
        "focus_spans": focus.spans(chunks),
    }


def _citations(document_id: UUID) -> dict[str, Any]:
    cited, count = citing.list_citations(*context.caller(), document_id, limit=_MAX_CITED)
    return {"cited": cited, "cited_count": count}


def _image_sizes(
    detail: DocumentDetail, chunks: Iterable[StoredChunk]
) -> dict[str, tuple[int, int]]:
    blocks = (block for stored in chunks for block in stored.chunk.blocks)
    keys = [block.key for block in blocks if block.kind is BlockKind.IMAGE]
    return showing.image_sizes(*context.caller(), detail.summary.id, keys)


def _citing(stored: StoredChunk, cited: Iterable[CitedIn]) -> list[CitedIn]:
    """Return the citations of the current text that overlap a chunk, one per conversation."""
    start, end = stored.chunk.char_start, stored.chunk.char_end
    found: dict[UUID, CitedIn] = {}
    for one in cited:
        citation = one.citation
        if citation.state is not SourceState.CURRENT:
            continue
        is_here = citation.chunk_id == stored.id
        if citation.revision_id is not None and start is not None and end is not None:
            is_here = citation.char_start < end and start < citation.char_end
        if is_here:
            found.setdefault(one.conversation_id, one)
    return list(found.values())


def source_values(citation: Citation, conversation_id: UUID) -> dict[str, Any]:
    """Return the template values of the pane beside a conversation that shows a citation in its
    document."""
    services, user = context.caller()
    if not citation.can_open or citation.document_id is None:
        quoted = None
        if citation.state is not SourceState.GONE:
            quoted = citing.quoted_text(services, user, citation.id)
        return {"citation": citation, "quoted": quoted}
    detail = library.get_document(services, user, citation.document_id)
    focus = cited_focus(detail.summary.id, citation.id)

    def address(**values: Any) -> str:
        return url_for("chat.show", conversation_id=conversation_id, source=citation.id, **values)

    shown: dict[str, Any] = {
        "citation": citation,
        "quoted": focus.quoted,
        "document": detail.summary,
        "has_pages": showing.has_pages(detail.summary.media_type) and focus.quoted is None,
        "address": address,
        "view": None,
        "why_text": None,
    }
    if wants_pages(detail, focus):
        shown["view"], shown["why_text"] = pages_view(detail, focus, address)
    if shown["view"] is not None or focus.quoted is not None:
        return shown
    start = 0
    if focus.chunk is not None:
        start = library.count_chunks_before(services, user, detail.summary.id, focus.chunk)
    return shown | text_values(detail, focus, max(0, start - _CHUNKS_BEFORE))
