"""Errors of files that cannot be read."""

from __future__ import annotations

from portal.errors.base import InvalidInput
from portal.errors.messages import N_

# A message on the line of its name keeps this list short.
# fmt: off


class EmptyFile(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” is empty: there is no text in it. Choose a file with text.")


class EncryptedPdf(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” is protected by a password. Save a copy without one and upload that.")


class BrokenPdf(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” is damaged and cannot be read. Open it in a PDF viewer, save a new "
                 "copy and upload that.")


class EmptyPdf(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” has no pages. Open it in the program it was made with, check that its "
                 "pages show, and export it again.")


class BrokenFile(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” is damaged and cannot be read. Open it in the app that created it, "
                 "save a new copy and upload that.")


class BlankPdf(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” cannot be searched: all of its pages are blank. Upload a file with "
                 "text.")


class NoTextInPdf(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” cannot be searched: no text on %(where)s, only pictures or drawings. "
                 "%(advice)s")


class NoTextInPicture(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” cannot be searched: no text was found in the picture. %(advice)s")


class UndecodableText(InvalidInput):
    is_permanent = True
    message = N_("“%(name)s” could not be read: it is not text, or its encoding is unknown. If it "
                 "is text, save it as UTF-8 and upload that. Other files that are read: PDF, "
                 "Word, Excel, PowerPoint, EPUB, e-mail (EML), CSV, HTML and Markdown.")


class UndecodableAs(UndecodableText):
    message = N_("“%(name)s” is not valid %(encoding)s. Choose another encoding.")


class ExtractionTimedOut(InvalidInput):
    message = N_("Reading “%(name)s” took more than %(seconds)s seconds and was stopped. Split it "
                 "into smaller files.")


class ExtractionTooLarge(InvalidInput):
    message = N_("“%(name)s” holds more %(what)s than the limit of %(limit)s. Split it into "
                 "smaller files.")


class UnpacksToTooMuch(ExtractionTooLarge):
    message = N_("Reading “%(name)s” takes more than the limit of %(limit_mb)s MB of memory: it "
                 "unpacks to far more than its size. Split it into smaller files, or save it "
                 "without its pictures and drawings.")


class TooMuchInOne(ExtractionTooLarge):
    is_permanent = True
    message = N_("“%(name)s” has more than %(limit)s %(what)s, which no document that is written "
                 "for readers has. Save the text you need as a new file and upload that.")


class UnreadableFile(InvalidInput):
    message = N_("The file cannot be read from the disk: %(reason)s.")
