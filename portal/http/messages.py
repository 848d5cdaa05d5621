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
    N_("an SVG image"),
    N_("a HEIC or AVIF image"),
    N_("an icon"),
    N_("a Photoshop image"),
    N_("a sound"),
    N_("a font"),
    N_("a TAR archive"),
    N_("a Zstandard archive"),
    N_("an e-mail with attachments or coded text (EML)"),
    N_("a web page archive (MHTML)"),
    N_("a Word document saved as XML"),
    N_("an Excel workbook saved as XML"),
    N_("an OpenDocument file saved as XML"),
    N_("a form data file (FDF)"),
    N_("uuencoded data"),
    N_("a netpbm image"),
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
    N_("attributes in one element"),
    N_("levels of nesting"),
    N_("elements"),
    N_("lines"),
    N_("characters in one paragraph"),
    N_("parts"),
    # What is not right, or clashes.
    N_("a name must have 1 to %(most)s characters"),
    N_("a name must not contain invisible characters"),
    N_("a name must contain visible characters"),
    N_("a password can have at most %(most)s characters"),
    N_("a title must have 1 to %(most)s characters"),
    N_("a question must have 1 to %(most)s characters"),
    N_("a domain can have at most %(most)s characters"),
    N_("this is the last administrator"),
    N_("this is your own account; change its password on the account page"),
    N_("an administrator transfers documents to another user"),
    N_("documents are transferred to another account"),
    N_("choose what happens to the documents"),
    N_("this document has no job in progress"),
    N_("this document has no failed or cancelled version"),
    N_("an authenticator app is set up already; remove it first"),
    N_("recovery codes need an authenticator app or a passkey first"),
    N_("an account has at most %(most)s passkeys"),
    N_("this passkey is registered already"),
    N_("browsers accept passkeys for names only, not for IP addresses; open %(address)s"),
    N_("browsers accept passkeys for names only, not for IP addresses; set PORTAL_PUBLIC_URL"),
    N_("browsers accept passkeys over HTTPS or on localhost only"),
    N_("passkeys of this portal work at %(address)s"),
    N_("send the new version as multipart form data, in `file`"),
    N_("a version is a single file"),
    N_("a title goes with a single file"),
    N_("query is blank; enter a question"),
    N_("weights are both 0; at least one must be greater than 0"),
    N_("visibility must be shared or private"),
    N_("send the document as multipart form data, in `file`"),
    N_("the part `file` has no file name, or one that is garbled"),
    N_("Idempotency-Key has 1 to %(most)s characters"),
    N_("the language must be zh-CN or en"),
    N_("there is no such event"),
    N_("a date must be written like 2026-01-31"),
    N_("only a failed document can be retried"),
    N_("the document is already being processed"),
    N_("unknown encoding; see the documentation for the list"),
    N_("only text files and web pages have an encoding to choose"),
    N_("invalid cursor"),
    N_("it contains a NUL character"),
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
    N_("top_k is at most %(most)s here"),
    N_("provide either query_text or query_vector, not both"),
    N_("vector_weight and text_weight are both 0; at least one must be greater than 0"),
    N_("the query has no visible characters; enter a question"),
    N_("its length is zero, so it points nowhere"),
    N_("its numbers are too large"),
    N_("some of its numbers are not finite"),
    # What cannot be done with an embedding model.
    N_("“%(name)s” is already active"),
    N_("“%(name)s” is active; switch to another model first"),
    N_("“%(name)s” is being built; wait for it to finish, or stop the build"),
    N_("“%(name)s” is registered with %(dimensions)s dimensions; drop it first"),
    N_(
        "“%(name)s” is the model in %(before)s, and the one in %(now)s gives other vectors; "
        "give its directory another name"
    ),
    N_("%(missing)s passages have not been embedded by “%(name)s” yet; finish building it first"),
    N_("there is no previous model to roll back to"),
    N_("a vector has 8 to 16000 dimensions"),
    N_("none of the questions has its answer stored here"),
    N_("line %(number)s of %(file)s is not a question: %(error)s"),
    N_("“%(name)s” cannot be built from this page"),
    N_("there is no directory “%(path)s”"),
    # Why an embedding model, or one that ranks again, gives nothing.
    N_(
        "its endpoint failed repeatedly and is paused for %(seconds)s more seconds; last "
        "error: %(reason)s"
    ),
    N_("it failed repeatedly and is paused for %(seconds)s more seconds"),
    N_("its endpoint did not answer within %(seconds)s seconds"),
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
        "“%(address)s” is not a valid endpoint address. Set PORTAL_EMBEDDING__API_BASE "
        "to one that begins with http:// or https://"
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
        "this process was forked after the model was used. Start the processes first and "
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
        "the model “%(name)s” is not a reranker: %(what)s. Set PORTAL_RERANK__MODEL to a "
        "cross-encoder with a single score"
    ),
    N_("it took more than %(seconds)s seconds"),
    N_("it failed (%(error)s)"),
    N_("it is still working on an earlier question"),
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
    N_(
        "its endpoint cannot be reached or dropped the connection (%(error)s). Check "
        "PORTAL_CHAT__API_BASE"
    ),
    N_("PORTAL_CHAT__API_BASE must begin with http:// or https://"),
    N_("its endpoint returned an error: %(said)s"),
    N_("its endpoint failed (%(error)s)"),
    N_("its endpoint dropped the connection mid-answer"),
    N_("its endpoint does not stop generating"),
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
    N_("Text recognition failed on this file."),
    N_("no text on page %(number)s (pictures?). Text recognition failed on this file."),
    N_("no text on pages %(numbers)s (pictures?). Text recognition failed on this file."),
    N_("U+0000 (NUL), shown as “�” in the text: %(count)s"),
    N_("control characters, which do not show: %(names)s"),
    N_("bytes that are no character, shown as “�” in the text: %(count)s"),
    # As earlier versions said it of documents that are still there.
    N_("NUL characters, shown as “�” in the text: %(count)s"),
    N_("formulas were skipped"),
    N_("headers and footers were skipped"),
    N_("nested too deeply: the innermost parts were read without headings, lists and tables"),
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
    Absence.IN_TRASH: N_("“%(title)s” is in the trash. Restore it to make it searchable."),
    Absence.NOT_READY: N_(
        "“%(title)s” is still being processed. It becomes searchable when it is ready."
    ),
    Absence.OFF_IN_CONVERSATION: N_(
        "“%(title)s” is turned off in this conversation. Turn it on there to search it."
    ),
    Absence.OFF_BY_DEFAULT: N_("You turned “%(title)s” off. Turn it on to search it."),
    Absence.NO_WORDS: N_(
        "Nothing was searched: the query has filters but no words to search for. Add a word."
    ),
    Absence.KEYWORD_UNAVAILABLE: N_(
        "“%(title)s” was not searched: keyword search is not available on this server. "
        "Search by meaning instead."
    ),
    Absence.NO_EMBEDDING_YET: N_(
        "“%(title)s” has not been embedded by the current model yet. This happens in the "
        "background; until then only keyword search finds it."
    ),
    Absence.BELOW_THRESHOLD: N_(
        "The best passage of “%(title)s” scores %(score)s, below the threshold of "
        "%(threshold)s. Lower the threshold to see it."
    ),
    Absence.DUPLICATE_OF: N_(
        "“%(title)s” nearly duplicates “%(other)s”, which is shown as result %(rank)s."
    ),
    Absence.RANKED: N_(
        "The best passage of “%(title)s” ranks %(rank)s, but only the first %(shown)s "
        "are shown. Show more, or make the question more specific."
    ),
    Absence.NO_WORD_IN_COMMON: N_(
        "“%(title)s” contains none of the words in the query. Use other words, or search "
        "by meaning too."
    ),
    Absence.IN_RESULTS: N_("“%(title)s” is in the results, ranked %(rank)s."),
}
FAILED_FILTERS = {
    "domain": N_(
        "The search is limited to the domain “%(operand)s”, and “%(title)s” is not in it."
    ),
    "type": N_("The search is limited to type %(operand)s, and “%(title)s” has a different type."),
    "title": N_(
        "The search requires “%(operand)s” in the title, and “%(title)s” does not contain it."
    ),
    "phrase": N_("No passage of “%(title)s” contains the exact phrase “%(operand)s”."),
    "word": N_("Every passage of “%(title)s” contains “%(operand)s”, which the search excludes."),
    "together": N_("No single passage of “%(title)s” matches all the filters. Remove one of them."),
}
HAS_FAILED = N_("“%(title)s” has no searchable text because reading it failed.")
RANKED_BEYOND = N_(
    "“%(title)s” was searched, but is not in the first %(beyond)s passages. Rephrase the query."
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
