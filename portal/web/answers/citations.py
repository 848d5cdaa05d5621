"""Citations: the card of a marker, and the page with the quote."""

from __future__ import annotations

from uuid import UUID

from flask import render_template

from portal.domain.conversations import QuotedText, SourceState
from portal.http import context
from portal.services.answers import citing
from portal.web.blueprint import PageBlueprint
from portal.web.documents.reading.focus import came_from
from portal.web.layout import Answer, wants_fragment

blueprint = PageBlueprint("citations", __name__)


@blueprint.get("/citations/<uuid:citation_id>/card")
def card(citation_id: UUID) -> Answer:
    """Show the card of a marker, on hover or focus."""
    if not wants_fragment():
        return show(citation_id)
    citation, header = citing.get_card(*context.caller(), citation_id)
    return render_template("fragments/citations/_card.html", citation=citation, header=header)


@blueprint.get("/citations/<uuid:citation_id>")
def show(citation_id: UUID) -> Answer:
    """Show the quote in the text that it was taken from, and whether it still matches."""
    services, user = context.caller()
    citation = citing.get_citation(services, user, citation_id)
    quoted: QuotedText | None = None
    if citation.state is not SourceState.GONE:
        quoted = citing.quoted_text(services, user, citation_id)
    values = {
        "citation": citation,
        "quoted": quoted,
        "verified": citing.verify(services, user, citation_id),
        "conversation_id": came_from(),
    }
    return render_template("pages/answers/citation.html", **values)
