"""Owns small real files of each format, made from nothing but the format's rules.

It must not know how they are read.
"""

import io
import zipfile
from collections.abc import Sequence

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def docx(paragraphs: Sequence[tuple[str, str]]) -> bytes:
    """A Word document of (style, text) paragraphs; the style is "" or such as "Heading1"."""
    body = "".join(
        f"<w:p>{f'<w:pPr><w:pStyle w:val={style!r}/></w:pPr>' if style else ''}"
        f"<w:r><w:t>{text}</w:t></w:r></w:p>"
        for style, text in paragraphs
    )
    return docx_of(f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>')


def docx_of(document_xml: str) -> bytes:
    """A Word document whose main part is `document_xml`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/>'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
            'relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_TYPES}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{_RELATION}" Target="word/document.xml"/>'
            "</Relationships>",
        )
        archive.writestr("word/document.xml", document_xml)
    return file.getvalue()


def pdf(pages: Sequence[Sequence[str]], *, title: str = "", is_encrypted: bool = False) -> bytes:
    """A PDF with these lines on its pages; encrypted ones ask for a password nobody knows."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    objects.append(f"<< /Title ({title}) >>".encode())
    kids: list[str] = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 11 Tf 50 780 Td {shown}ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    trailer = b""
    if is_encrypted:
        secret = b"<" + b"ab" * 32 + b">"
        objects.append(b"<< /Filter /Standard /V 1 /R 2 /O %s /U %s /P -4 >>" % (secret, secret))
        trailer = b" /Encrypt %d 0 R /ID [<%s> <%s>]" % (len(objects), b"01" * 16, b"01" * 16)
    out = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R%s >>\n" % (len(objects) + 1, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)
