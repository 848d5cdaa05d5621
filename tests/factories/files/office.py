"""Makes Word documents for tests, good and hostile ones, part by part."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
CONTENT_TYPES = (
    f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
    '+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>'
)
# As Chinese Word writes them: numbers as style ids, with English names.
_STYLES = (
    f'{_XML}<w:styles xmlns:w="{MAIN}">'
    '<w:style w:type="paragraph" w:styleId="1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="C"><w:name w:val="HTML Preformatted"/></w:style>'
    "</w:styles>"
)
_NUMBERING = (
    f'{_XML}<w:numbering xmlns:w="{MAIN}"><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
)
BOMB_BYTES = 101 << 20


def paragraph(text: str, *, style: str = "", level: int | None = None) -> str:
    """Return a paragraph; with `level`, a list item at that depth, from 0."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if level is not None:
        properties += f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    run = f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'
    return f"<w:p><w:pPr>{properties}</w:pPr>{run}</w:p>"


def table(*rows: tuple[str, ...]) -> str:
    return "<w:tbl>{}</w:tbl>".format(
        "".join(
            "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
            for row in rows
        )
    )


_CHANGED = (
    f'<w:p><w:ins w:id="1" xmlns:w="{MAIN}"><w:r><w:t>修订中加入的文字</w:t></w:r></w:ins>'
    "<w:del><w:r><w:delText>删去的文字</w:delText></w:r></w:del></w:p>"
)
HANDBOOK = "".join(
    [
        paragraph("知识门户操作手册", style="1"),
        paragraph("每个答案都注明出处。"),
        paragraph("安装", style="2"),
        paragraph("下载软件包", level=0),
        paragraph("校验 SHA-256", level=1),
        paragraph("运行安装程序", level=0),
        table(("部件", "数量"), ("风扇 | fan", "6")),
        paragraph("if ready:", style="C"),
        paragraph("    start()", style="C"),
        _CHANGED,
    ]
)
FORMULA = f'<w:p><m:oMath xmlns:m="{_MATH}"><m:r><m:t>E=mc</m:t></m:r></m:oMath></w:p>'


def write_docx(
    path: Path, body: str = HANDBOOK, *, parts: Mapping[str, str | bytes] | None = None
) -> Path:
    """Write a document with this body; `parts` replaces or adds parts of the archive."""
    document = f'{_XML}<w:document xmlns:w="{MAIN}"><w:body>{body}</w:body></w:document>'
    contents: dict[str, str | bytes] = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": _RELATIONS,
        "word/document.xml": document,
        "word/styles.xml": _STYLES,
        "word/numbering.xml": _NUMBERING,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (contents | dict(parts or {})).items():
            archive.writestr(name, content)
    return path


def docx_with_picture(path: Path) -> Path:
    """Write a document with a picture that has no description, as Word inserts it."""
    drawing = (
        '<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        'wordprocessingDrawing"><wp:docPr id="1" name="Picture 1"/><a:graphic xmlns:a="http://schemas.'
        'openxmlformats.org/drawingml/2006/main"><a:graphicData><pic:pic xmlns:pic="http://schemas.'
        'openxmlformats.org/drawingml/2006/picture"><pic:blipFill><a:blip xmlns:r="http://schemas.'
        'openxmlformats.org/officeDocument/2006/relationships" r:embed="rId1"/></pic:blipFill>'
        "</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
    relations = (
        f'{_XML}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/image" Target="media/image1.png"/></Relationships>'
    )
    body = paragraph("The lamp is drawn below.") + drawing + paragraph("It burns oil.")
    parts = {"word/_rels/document.xml.rels": relations, "word/media/image1.png": b"\x89PNG"}
    return write_docx(path, body, parts=parts)


def docx_with_document_type(path: Path, declaration: str, text: str, encoding: str) -> Path:
    """Write a document whose main part declares entities, as XXE and the billion laughs do."""
    document = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE w:document [{declaration}]>'
        f'<w:document xmlns:w="{MAIN}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>'
        "</w:document>"
    )
    return write_docx(path, parts={"word/document.xml": document.encode(encoding)})


def docx_reading_a_file(path: Path, *, encoding: str = "utf-8") -> Path:
    return docx_with_document_type(
        path, '<!ENTITY secret SYSTEM "file:///etc/passwd">', "&secret;", encoding
    )


def docx_billion_laughs(path: Path) -> Path:
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    return docx_with_document_type(path, entities, "&a9;", "utf-8")


def docx_bomb(path: Path) -> Path:
    """Write a document of 100 kB that unpacks to 101 MB of XML."""
    return write_docx(path, parts={"word/document.xml": b" " * BOMB_BYTES})


def docx_that_lies_about_its_size(path: Path) -> Path:
    """Write `docx_bomb` in an archive that claims to unpack to 100 bytes."""
    docx_bomb(path)
    data = path.read_bytes()
    size = BOMB_BYTES.to_bytes(4, "little")
    path.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    return path


def zip_file(path: Path, names: tuple[str, ...] = ("a.txt",)) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "words")
    return path
