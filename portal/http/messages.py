"""Words that errors and documents carry as values, for the translators.

Layers below write such values in English, some with numbers already in them, and keep them with
the document. Each stands here as a template, so that it reads in the reader's language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from flask_babel import gettext

from portal.domain.documents import Failure
from portal.domain.explaining import Absence, WhyNot
from portal.errors import MESSAGES, N_, PortalError

TEMPLATES = (
    # What a file turned out to be.
    N_("a PNG image"),
    N_("a JPEG image"),
    N_("a GIF image"),
    N_("a BMP image"),
    N_("a TIFF image"),
    N_("a WebP image, sound or video"),
    N_("a video"),
    N_("an MP3 sound"),
    N_("an Ogg sound or video"),
    N_("an old Office document (DOC, XLS, PPT)"),
    N_("an Office document with a password"),
    N_("an RTF document"),
    N_("a PostScript file"),
    N_("a GZIP archive"),
    N_("a BZIP2 archive"),
    N_("an XZ archive"),
    N_("a 7-Zip archive"),
    N_("a RAR archive"),
    N_("a ZIP archive"),
    N_("a Java archive"),
    N_("a program"),
    N_("an SQLite database"),
    N_("a DjVu document"),
    N_("an Excel workbook (XLSX)"),
    N_("a PowerPoint presentation (PPTX)"),
    N_("an EPUB book"),
    N_("an OpenDocument file"),
    N_("binary data"),
    N_("plain text that is called PDF"),
    # What there was too much of.
    N_("pages"),
    N_("characters"),
    N_("data"),
    # What is not right, or clashes.
    N_("a name has 1 to %(most)s characters"),
    N_("a name has no invisible characters"),
    N_("a password has at most %(most)s characters"),
    N_("a title has 1 to %(most)s characters"),
    N_("a question has 1 to %(most)s characters"),
    N_("a domain has at most %(most)s characters"),
    N_("this is the last administrator"),
    N_("nothing is being done for this document"),
    N_("no new version of this document has failed or was cancelled"),
    N_("send the new version as multipart form data, in `file`"),
    N_("a version is a single file"),
    N_("a title goes with a single file"),
    N_("query has nothing but white space; write a question"),
    N_("weights are both 0; one is to be more than 0"),
    N_("visibility is shared or private"),
    N_("send the document as multipart form data, in `file`"),
    N_("Idempotency-Key has 1 to %(most)s characters"),
    N_("the language is zh-CN or en"),
    N_("only a failed document can be tried again"),
    N_("the document is being prepared already"),
    N_("this encoding is not known; the documentation lists them"),
    N_("only text files and web pages have an encoding to choose"),
    N_("the cursor is not one of ours"),
    N_("it holds an invisible NUL character"),
    N_("the JSON is nested too deeply"),
    # What cannot be a passage, a filter of metadata or a query.
    N_("metadata has at most %(most)s characters"),
    N_("metadata holds a character that cannot be stored"),
    N_("metadata holds a number that is not finite"),
    N_("metadata is nested at most %(most)s deep"),
    N_("a metadata filter has at most %(most)s conditions"),
    N_("a metadata filter has at most %(most)s values"),
    N_("a condition of a metadata filter has field, operator and value"),
    N_("the field of a metadata filter is a name, or a list of names"),
    N_("a metadata filter is an object, or a list of conditions"),
    N_("a metadata filter is nested at most %(most)s deep"),
    N_("“%(name)s” of a metadata filter takes a list of filters"),
    N_("“%(name)s” of a metadata filter mixes names and operators"),
    N_("true and false have no order in a metadata filter"),
    N_("“in” of a metadata filter takes a list of at most %(most)s values"),
    N_("“in” of a metadata filter takes a list of values"),
    N_(
        "a value in a metadata filter is true, false, a number, or text of at most %(most)s "
        "characters"
    ),
    N_("a name in a metadata filter has 1 to %(most)s characters"),
    N_("a path in a metadata filter has at most %(most)s names"),
    N_("“%(name)s” is no operator of a metadata filter"),
    N_("this job is not the one whose passages are searched"),
    N_("1 to %(most)s passages are added at once"),
    N_("a passage has 1 to %(most)s characters, and some of them show"),
    N_("chunk_index is 0 to %(most)s"),
    N_("it has %(got)s dimensions, and “%(name)s”, the model that serves, has %(wanted)s"),
    N_("a fuzzy query has %(least)s letters or more"),
    N_("give query_text or query_vector, and not both"),
    N_("vector_weight and text_weight are both nothing; one is to be more than 0"),
    N_("the query has no character that shows; write a question"),
    N_("its length is zero, so it points nowhere"),
    N_("its numbers are too large"),
    N_("some of its numbers are not finite"),
    # What cannot be done with an embedding model.
    N_("“%(name)s” serves already"),
    N_("“%(name)s” serves; switch to another model first"),
    N_("“%(name)s” is being built; wait for it, or stop what builds it"),
    N_("“%(name)s” is registered with %(dimensions)s dimensions; drop it first"),
    N_(
        "“%(name)s” is the model in %(before)s, and the one in %(now)s gives other vectors; "
        "give its directory another name"
    ),
    N_("%(missing)s passages have no vector by “%(name)s” yet; build it to its end first"),
    N_("there is no model to go back to"),
    N_("a vector has 8 to 16000 dimensions"),
    N_("there is no question whose answer is stored here"),
    N_("line %(number)s of %(file)s is no question: %(error)s"),
    N_("“%(name)s” is no model that this page can build"),
    N_("there is no directory “%(path)s”"),
    # Why an embedding model, or one that ranks again, gives nothing.
    N_(
        "its endpoint failed repeatedly and is left alone for %(seconds)s more seconds; "
        "the last time: %(reason)s"
    ),
    N_("it failed repeatedly and is left alone for %(seconds)s more seconds"),
    N_("its endpoint took more than %(seconds)s seconds"),
    N_("it is still being loaded"),
    N_(
        "its endpoint answered %(status)s: %(said)s. "
        "Check PORTAL_EMBEDDING__MODEL, __API_KEY, __API_BASE and __DIMENSIONS"
    ),
    N_("its endpoint answered %(status)s"),
    N_(
        "its endpoint redirects to %(address)s, and the key is not sent after it. "
        "Set PORTAL_EMBEDDING__API_BASE to the address that answers"
    ),
    N_("its endpoint %(address)s cannot be reached (%(error)s). Check PORTAL_EMBEDDING__API_BASE"),
    N_(
        "“%(address)s” is no address of an endpoint. Set PORTAL_EMBEDDING__API_BASE to one that "
        "begins with http:// or https://"
    ),
    N_(
        "the package sentence-transformers is not installed. Run `./run setup --local`, "
        "or `pip install -r requirements/local.txt`"
    ),
    N_(
        "there is no directory “%(path)s”. Copy the model to this machine and set "
        "PORTAL_EMBEDDING__MODEL to its directory (%(error)s)"
    ),
    N_(
        "the directory “%(path)s” holds no model that can be loaded. Copy the model to this "
        "machine and set PORTAL_EMBEDDING__MODEL to its directory (%(error)s)"
    ),
    N_(
        "the model “%(name)s” is neither in the cache, nor can it be downloaded. Copy the model "
        "to this machine and set PORTAL_EMBEDDING__MODEL to its directory (%(error)s)"
    ),
    N_(
        "“%(name)s” gives %(got)s dimensions, not %(asked)s. Set "
        "PORTAL_EMBEDDING__DIMENSIONS=%(got_again)s or leave it out"
    ),
    N_(
        "the bundled model “%(name)s” does not load (%(error)s). Install the locked requirements "
        "again, or choose another PORTAL_EMBEDDING__PROVIDER"
    ),
    N_(
        "no bundled model is called “%(name)s”. Set PORTAL_EMBEDDING__MODEL to one of "
        "%(names)s, or leave it out"
    ),
    N_(
        "this process was forked after the model had been used. Start processes first and "
        "embed in each (for gunicorn: without --preload)"
    ),
    N_(
        "the package sentence-transformers is not installed. Run `./run setup --local`, or "
        "set PORTAL_RERANK__PROVIDER=off"
    ),
    N_(
        "the model “%(name)s” is neither a directory with a cross-encoder, nor in the cache, "
        "nor can it be downloaded. Copy one to this machine and set PORTAL_RERANK__MODEL to "
        "its directory (%(error)s)"
    ),
    N_(
        "the model “%(name)s” is no reranker: %(what)s. Set PORTAL_RERANK__MODEL to a "
        "cross-encoder with a single score"
    ),
    N_("it took more than %(seconds)s seconds"),
    N_("it failed (%(error)s)"),
    N_("it still works on an earlier question"),
    N_("it is busy with other questions"),
    N_("asked for %(count)s scores, got %(got)s"),
    N_("some of its scores are not finite"),
    N_("its scores are not numbers"),
    # Why a chat model gives no answer.
    N_(
        "its endpoint answered %(status)s: %(said)s. "
        "Check PORTAL_CHAT__MODEL, __API_KEY and __API_BASE"
    ),
    N_(
        "its endpoint redirects, and the key is not sent after it. Set "
        "PORTAL_CHAT__API_BASE to the address that answers"
    ),
    N_(
        "what its endpoint sends is not what OpenAI's protocol says. Does "
        "PORTAL_CHAT__API_BASE lead to the API, such as https://host/v1?"
    ),
    N_("its endpoint cannot be reached or broke off (%(error)s). Check PORTAL_CHAT__API_BASE"),
    N_("PORTAL_CHAT__API_BASE is no address that begins with http:// or https://"),
    N_("its endpoint gave up: %(said)s"),
    N_("its endpoint failed (%(error)s)"),
    N_("its endpoint broke off in the middle"),
    N_("its endpoint does not stop writing"),
    N_("its endpoint wrote nothing"),
    N_("it was shut down"),
    # What is wrong with a vector.
    N_("expected %(count)s × %(dimensions)s numbers, got %(got)s"),
    N_("it is not a list of equally long lists of numbers"),
    N_("“%(name)s”: expected %(count)s × %(dimensions)s numbers, got %(got)s"),
    N_("“%(name)s”: some of its numbers are not finite"),
    N_(
        "the endpoint's answer (%(kind)s) is not what OpenAI's protocol says. Does "
        "PORTAL_EMBEDDING__API_BASE lead to the API, such as https://host/v1?"
    ),
    N_("asked for %(count)s vectors, got %(got)s"),
    N_("the endpoint does not say which vector belongs to which text"),
    N_("the endpoint answered with more than %(limit)s kB"),
    # What is known of a document's text.
    N_("%(empty)s of %(all)s pages have no text (pictures?): %(numbers)s"),
    N_("page %(numbers)s"),
    N_("pages %(numbers)s"),
    N_("Install text recognition (./run setup --ocr) and try again."),
    N_("Text recognition found nothing on them either."),
    N_(
        "no text on page %(number)s (pictures?). "
        "Install text recognition (./run setup --ocr) and try again."
    ),
    N_(
        "no text on pages %(numbers)s (pictures?). "
        "Install text recognition (./run setup --ocr) and try again."
    ),
    N_("no text on page %(number)s (pictures?). Text recognition found nothing on them either."),
    N_("no text on pages %(numbers)s (pictures?). Text recognition found nothing on them either."),
    N_(
        "Text recognition ran out of time: "
        "raise PORTAL_INGEST__OCR_TIMEOUT_S and read the file again."
    ),
    N_(
        "no text on page %(number)s (pictures?). Text recognition ran out of time: "
        "raise PORTAL_INGEST__OCR_TIMEOUT_S and read the file again."
    ),
    N_(
        "no text on pages %(numbers)s (pictures?). Text recognition ran out of time: "
        "raise PORTAL_INGEST__OCR_TIMEOUT_S and read the file again."
    ),
    N_("Text recognition stumbled over the file and broke off."),
    N_(
        "no text on page %(number)s (pictures?). "
        "Text recognition stumbled over the file and broke off."
    ),
    N_(
        "no text on pages %(numbers)s (pictures?). "
        "Text recognition stumbled over the file and broke off."
    ),
    N_("NUL characters, which stand as “�” in the text: %(count)s"),
    N_("formulas are not read: the text lacks them"),
    N_("headers and footers are not read: the text lacks them"),
    N_("nested too deeply: what stands deepest is read without headings, lists and tables"),
)


def translated(text: str) -> str:
    """`text` in the reader's language; as it is when it fits no template."""
    for template, pattern in _patterns():
        if match := pattern.fullmatch(text):
            words = str(gettext(template))
            # A reason within a reason is one of these, too.
            values = {
                name: translated(value) if name == "reason" else value
                for name, value in match.groupdict().items()
            }
            return words % values if values else words
    return text


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, _pattern(template)) for template in TEMPLATES)


def _pattern(template: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", template)
    # Split leaves text and names of places in turn.
    return re.compile(
        "".join(
            re.escape(piece) if index % 2 == 0 else f"(?P<{piece}>.+?)"
            for index, piece in enumerate(pieces)
        )
    )


def in_words(template: str, params: Mapping[str, Any]) -> str:
    """Translate `template` and those of its values that are messages themselves."""
    words = {
        name: translated(value) if isinstance(value, str) else value
        for name, value in params.items()
    }
    text = str(gettext(template))
    return text % words if words else text


def error_message(error: PortalError) -> str:
    """What happened, why and what to do, in the reader's language."""
    return in_words(error.message, error.params)


def failure_message(failure: Failure) -> str:
    """Why a document failed and what to do, in the reader's language."""
    try:
        return in_words(MESSAGES.get(failure.code, PortalError.message), failure.params)
    except (KeyError, TypeError, ValueError):
        # A document that failed under an older version may lack a value that the words want.
        return str(gettext(PortalError.message))


ABSENCES = {
    Absence.IN_TRASH: N_("“%(title)s” is in the trash. Restore it to find it again."),
    Absence.NOT_READY: N_(
        "“%(title)s” is still being prepared. It is found as soon as it is ready."
    ),
    Absence.OFF_IN_CONVERSATION: N_(
        "“%(title)s” is switched off in this conversation. Switch it on there to search it."
    ),
    Absence.OFF_BY_DEFAULT: N_("You have switched “%(title)s” off. Switch it on to search it."),
    Absence.NO_WORDS: N_(
        "Nothing was searched, “%(title)s” neither: the question has no word to look for, only "
        "conditions. Add a word to look for."
    ),
    Absence.KEYWORD_UNAVAILABLE: N_(
        "“%(title)s” was not searched: search by words is not available on this server. Search by "
        "meaning too."
    ),
    Absence.NO_EMBEDDING_YET: N_(
        "“%(title)s” has no vectors of the current embedding model yet. They are made in the "
        "background; until then it is found by its words alone."
    ),
    Absence.BELOW_THRESHOLD: N_(
        "The best passage of “%(title)s” scores %(score)s, and the search leaves out what scores "
        "below %(threshold)s. Lower the threshold to see it."
    ),
    Absence.DUPLICATE_OF: N_(
        "“%(title)s” says the same as “%(other)s”, which stands for both as result %(rank)s."
    ),
    Absence.RANKED: N_(
        "“%(title)s” was searched. Its best passage comes at place %(rank)s; results shown: "
        "%(shown)s. Show more, or ask more exactly."
    ),
    Absence.NO_WORD_IN_COMMON: N_(
        "“%(title)s” holds none of the words of the question. Use other words, or search by "
        "meaning too."
    ),
    Absence.IN_RESULTS: N_("“%(title)s” is among the results, at place %(rank)s."),
}
FAILED_FILTERS = {
    "domain": N_(
        "The search is narrowed to the domain “%(operand)s”, and “%(title)s” is not in it."
    ),
    "type": N_("The search is narrowed to the type %(operand)s, and “%(title)s” is of another."),
    "title": N_("The search wants “%(operand)s” in the title, and “%(title)s” does not have it."),
    "phrase": N_("No passage of “%(title)s” holds the words “%(operand)s” in just this order."),
    "word": N_("Every passage of “%(title)s” mentions “%(operand)s”, which the search leaves out."),
    "together": N_(
        "No single passage of “%(title)s” meets all the conditions of the search together. "
        "Take one of them away."
    ),
}
HAS_FAILED = N_("“%(title)s” has no text to search, because reading it failed.")
RANKED_BEYOND = N_(
    "“%(title)s” was searched, but is not among the first %(beyond)s passages. Ask in other words."
)


def absence_message(why: WhyNot) -> str:
    """Why a document is not among the results and what to do, in the reader's language."""
    words: dict[str, Any] = {"title": why.title, "rank": why.rank, "shown": why.shown_count}
    template = ABSENCES.get(why.reason, RANKED_BEYOND)
    if why.failed_filter is not None:
        template = FAILED_FILTERS[why.failed_filter.kind]
        words["operand"] = why.failed_filter.operand
    elif why.failure is not None:
        return f"{gettext(HAS_FAILED) % words} {failure_message(why.failure)}"
    elif why.reason is Absence.RANKED and why.rank is None:
        template, words["beyond"] = RANKED_BEYOND, why.ranked_beyond
    elif why.duplicate_of is not None:
        words["other"] = why.duplicate_of.title
    elif why.threshold is not None and why.score is not None:
        words |= {"score": f"{why.score:.2f}", "threshold": f"{why.threshold:.2f}"}
    return str(gettext(template)) % words
