"""Owns how a file's bytes become text: encodings, HTML, PDF and DOCX.

It must not know passages, nor where the file is. What a document says is data: no script is run,
no link followed, no entity fetched.
"""

import codecs
import importlib
import io
import re
import threading
import zipfile
from dataclasses import dataclass
from typing import Any

MAX_UNPACKED_BYTES = 100_000_000
"""What a DOCX may hold once unpacked: a small file can hold terabytes of zeros."""

MAX_PAGES = 5_000
MAX_MARKUP_CHARS = 30_000_000
_MAX_DEPTH = 200
_UNSEEN = ["nav", "footer", "script", "style", "noscript", "template", "svg"]

_pdfium = threading.Lock()
"""PDFium is not safe to use from two threads. Source: its own README."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_METADATA = re.compile(r"---\n(?:[\w-]+: .*\n)+---\n\s*")
_LATIN = frozenset({"iso-8859-1", "iso8859-1", "latin1", "latin-1", "us-ascii", "ascii"})
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w-]{2,40})", re.IGNORECASE)


class Unreadable(Exception):
    """A file cannot be made searchable; the text is the reason, a short phrase for people."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a paged document; `line` is where it begins in the whole text."""

    number: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Content:
    """What a file says. `pages` is empty but for paged formats; `title` is empty if unknown."""

    text: str
    is_markdown: bool
    title: str = ""
    pages: tuple[Page, ...] = ()


def decode(data: bytes) -> str:
    """The text of `data` in UTF-8, UTF-16 or Windows-1252.

    Raises:
        Unreadable: it is not text.
    """
    encoding = _encoding(data)
    if encoding is None:
        raise Unreadable("binary")
    text = data.decode(encoding, errors="replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def from_html(data: bytes) -> Content:
    """A page's content as Markdown, without scripts, styles, navigation and footer.

    Raises:
        Unreadable: it is not text.
    """
    return _from_markup(_decode_html(data))


def from_docx(data: bytes) -> Content:
    """A Word document's content as Markdown; images are left out.

    Raises:
        Unreadable: encrypted, broken, or far larger than it seems.
    """
    if data.startswith(_OLE):
        raise Unreadable("encrypted, or of an older Word format")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(item.file_size for item in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise Unreadable("too large once unpacked")
            # Word writes no DTD: one is there to make entities of entities.
            names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
            if any(b"<!DOCTYPE" in archive.read(name) for name in names):
                raise Unreadable("broken")
        mammoth: Any = importlib.import_module("mammoth")
        # An image becomes an empty mark; the library's own way would copy it into the text.
        no_image = mammoth.images.img_element(_no_image)
        html: str = mammoth.convert_to_html(io.BytesIO(data), convert_image=no_image).value
    except Unreadable:
        raise
    except Exception as err:
        # A damaged archive or XML fails in many ways, all of which mean the same here.
        raise Unreadable("broken") from err
    return _from_markup(html)


def from_pdf(data: bytes) -> Content:
    """A PDF's text, page by page.

    Raises:
        Unreadable: encrypted, broken, too long, or a scan without text.
    """
    pdfium: Any = importlib.import_module("pypdfium2")
    texts: list[str] = []
    with _pdfium:
        try:
            document = pdfium.PdfDocument(data)
        except pdfium.PdfiumError as err:
            is_locked = "password" in str(err).lower()
            raise Unreadable("encrypted" if is_locked else "broken") from err
        try:
            title = str(document.get_metadata_dict().get("Title") or "").strip()
            if len(document) > MAX_PAGES:
                raise Unreadable(f"too large (over {MAX_PAGES:,} pages)")
            for number in range(len(document)):
                page = document[number]
                text = page.get_textpage()
                texts.append(_tidy_page(text.get_text_range()))
                text.close()
                page.close()
        except pdfium.PdfiumError as err:
            raise Unreadable("broken") from err
        finally:
            document.close()
    if not any(text.strip() for text in texts):
        raise Unreadable("holds no text (a scan?)")
    pages: list[Page] = []
    line = 1
    for number, text in enumerate(texts, 1):
        pages.append(Page(number, text, line))
        line += text.count("\n") + 1
    return Content("\n".join(texts), is_markdown=False, title=title, pages=tuple(pages))


def _encoding(data: bytes) -> str | None:
    """The most likely encoding; None when the bytes are not text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = data[:4_096]
    if b"\x00" in sample:
        # Latin text in UTF-16 without a mark: every second byte is zero, and none of the others.
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 0.4 * len(sample) / 2 and min(even, odd) == 0:
            return "utf-16-be" if even > odd else "utf-16-le"
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None if len(_CONTROL.findall(sample)) > len(sample) / 100 else "cp1252"
    return None if _CONTROL.search(sample) and b"\x00" in data else "utf-8"


def _decode_html(data: bytes) -> str:
    """A page says itself how it is written; otherwise it is judged like any text."""
    named = _CHARSET.search(data[:2_048])
    name = named[1].decode().lower() if named else ""
    # What calls itself Latin-1 is Windows-1252, and a page that could be read this far is no
    # UTF-16. Source: https://encoding.spec.whatwg.org/#names-and-labels, HTML 13.2.3.2
    if not name or name in _LATIN or name.startswith("utf-16"):
        return decode(data)
    try:
        return data.decode(name)
    except (LookupError, UnicodeError):
        return decode(data)


def _from_markup(html: str) -> Content:
    if len(html) > MAX_MARKUP_CHARS:
        raise Unreadable("too large once unpacked")
    converter: Any = importlib.import_module("html_to_markdown")
    options = converter.ConversionOptions(
        exclude_selectors=_UNSEEN,
        skip_images=True,
        max_depth=_MAX_DEPTH,
        compact_tables=True,
        extract_metadata=True,
    )
    try:
        result = converter.convert(html, options)
    except BaseException as err:
        # A panic in the converter is no Exception.
        if isinstance(err, (Exception, KeyboardInterrupt, SystemExit)):
            raise
        raise Unreadable("broken") from err
    # The converter puts what it knows of the page in front of its text.
    text: str = result.content or ""
    if preamble := _METADATA.match(text):
        text = text[preamble.end() :]
    title = result.metadata.document.title if result.metadata else None
    return Content(text, is_markdown=True, title=" ".join((title or "").split()))


def _tidy_page(text: str) -> str:
    """A page's lines; words that were parted at a line's end are joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub("[\ufffe\u00ad\x02]\n?", "", text)
    return text.replace("\x00", "").replace("\x0c", "\n").rstrip()


def _no_image(_image: object) -> dict[str, str]:
    return {"src": ""}
