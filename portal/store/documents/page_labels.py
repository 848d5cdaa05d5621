"""Printed page labels that differ from the page number: "iv", "A-3".

Labels are stored in the revision, in the order of its pages, which count from 1 without gaps.
Reading them from there keeps a citation true to its revision, and covers revisions stored before
labels were shown.
"""

from __future__ import annotations


def page_label(pages: str, page: str) -> str:
    """Return SQL for a page's label, NULL where it is the number; arguments are columns."""
    return f"{pages} -> ({page} - 1) ->> 3"


def label_of_chunk(chunk: str) -> str:
    """Return SQL for the label of the page on which a chunk begins.

    `chunk` is the name of its row. Text without pages costs nothing, other text two lookups by key.
    """
    return f"""(
        SELECT {page_label("revision.pages", f"{chunk}.page")}
        FROM jobs job JOIN document_revisions revision ON revision.id = job.revision_id
        WHERE job.id = {chunk}.job_id AND {chunk}.page IS NOT NULL
    )"""
