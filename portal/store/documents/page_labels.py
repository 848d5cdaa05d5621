"""What is printed on a page, where that is not its number: "iv", "A-3".

Labels stand in the revision, in the order of its pages, which count from 1 without a gap. They are
looked up there, so that a citation tells what its revision says, and what was read before anything
showed labels has them too.
"""

from __future__ import annotations


def page_label(pages: str, page: str) -> str:
    """SQL for the label of a page, NULL where it is the number; both arguments are columns."""
    return f"{pages} -> ({page} - 1) ->> 3"


def label_of_chunk(chunk: str) -> str:
    """SQL for the label of the page on which a passage begins; `chunk` is the name of its row. It
    costs nothing in what has no pages, and two rows found by their keys in what has."""
    return f"""(
        SELECT {page_label("revision.pages", f"{chunk}.page")}
        FROM jobs job JOIN document_revisions revision ON revision.id = job.revision_id
        WHERE job.id = {chunk}.job_id AND {chunk}.page IS NOT NULL
    )"""
