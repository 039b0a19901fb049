"""Every usual format is read, and a file that cannot be is named with its reason."""

import io
import zipfile
from pathlib import Path

import pytest

from core.errors import ConfigError, ToolError
from core.search import DocIndex
from core.search.documents import parse
from core.search.formats import Unreadable, decode
from core.search.links import Links, anchor
from tests.support_formats import docx, docx_of, pdf
from tests.support_search import write_files

HTML = b"""<!doctype html><html><head><title>Badges | Help</title><style>p{color:red}</style>
<script>var swordfish = 1</script></head><body><nav>Home Products</nav>
<h1>Badges</h1><p>Wear your badge &amp; smile.</p>
<h2>Lost badge</h2><p>Call the <a href="/desk">front desk</a>.</p>
<table><tr><th>Door</th><th>Opens</th></tr><tr><td>North</td><td>7:00</td></tr></table>
<footer>Imprint</footer></body></html>"""


@pytest.mark.parametrize(
    "data",
    [
        "Zürich grüßt".encode(),
        b"\xef\xbb\xbf" + "Zürich grüßt".encode(),
        "Zürich grüßt".encode("utf-16"),
        "Zürich grüßt".encode("utf-16-le"),
        "Zürich grüßt".encode("utf-16-be"),
        "Zürich grüßt".encode("cp1252"),
    ],
)
def test_encodings_are_detected(data: bytes) -> None:
    assert decode(data) == "Zürich grüßt"


@pytest.mark.parametrize("data", [b"\x00\x01\x02\x03abc\x00", b"\x7fELF\x02\x01\x01\x00" * 9])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(Unreadable, match="binary"):
        decode(data)


def test_html_keeps_its_content_and_drops_the_rest() -> None:
    parsed = parse("a.html", HTML)
    text = "\n".join(part.text for part in parsed.parts)
    assert parsed.title == "Badges"
    assert [part.heading for part in parsed.parts] == ["", "Lost badge"]
    assert "Wear your badge & smile." in text
    assert "| North | 7:00 |" in text
    assert not any(word in text for word in ("swordfish", "color", "Products", "Imprint"))


def test_html_says_itself_how_it_is_written() -> None:
    page = '<meta charset="shift_jis"><h1>接続手順</h1><p>本文</p>'
    assert parse("a.html", page.encode("shift_jis")).title == "接続手順"


@pytest.mark.parametrize(
    ("named", "written"),
    [
        ("iso-8859-1", "cp1252"),
        ("ISO-8859-1", "utf-8"),
        ("utf-16", "utf-8"),
        ("undefined", "utf-8"),
    ],
)
def test_html_that_says_it_wrongly_is_read_as_browsers_do(named: str, written: str) -> None:
    page = f'<meta charset="{named}"><h1>The “Café”</h1><p>It’s open – €5, please.</p>'
    data = page.encode(written)
    data += b"\n" * (len(data) % 2)  # an odd number of bytes is no UTF-16 anyway
    parsed = parse("a.html", data)
    assert parsed.title == "The “Café”"
    assert parsed.parts[0].text == "It’s open – €5, please."


def test_docx_keeps_headings() -> None:
    data = docx([("Heading1", "Leave"), ("", "Ask early."), ("Heading2", "Sick"), ("", "Call.")])
    parsed = parse("leave.docx", data)
    assert parsed.title == "Leave"
    assert [(part.heading, part.text) for part in parsed.parts] == [
        ("", "Ask early."),
        ("Sick", "Call."),
    ]


def test_pdf_passages_know_their_page() -> None:
    data = pdf([["Parking is in the yard."], ["Bikes stand by the gate.", "Lock them."]])
    parsed = parse("site-map.pdf", data)
    assert parsed.title == "Site map"
    assert [(part.page, part.line) for part in parsed.parts] == [(1, 1), (2, 2)]
    assert parsed.parts[1].text == "Bikes stand by the gate.\nLock them."
    assert parse("x.pdf", pdf([["Text."]], title="House rules")).title == "House rules"


def bomb() -> bytes:
    """A DOCX of a few hundred kilobytes that unpacks to more than a hundred megabytes."""
    file = io.BytesIO(docx([("", "x")]))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/zeros.bin", b"\x00" * 101_000_000)
    return file.getvalue()


async def test_skipped_files_are_named_with_their_reason(tmp_path: Path) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    files: dict[str, bytes] = {
        "good.md": b"# Good\n\nFound.\n",
        "archive.zip": b"PK\x05\x06" + b"\x00" * 18,
        "binary.md": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01",
        "blank.md": b" \n\n",
        "bomb.docx": bomb(),
        "broken.docx": b"PK\x03\x04 not really",
        "broken.pdf": b"%PDF-1.4\nnothing",
        "empty.txt": b"",
        "entities.docx": docx_of(
            '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
            '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            "<w:body/></w:document>"
        ),
        "huge.txt": b"words and words\n" * 700_000,
        "locked.docx": ole,
        "locked.pdf": pdf([["secret"]], is_encrypted=True),
        "scan.pdf": pdf([[]]),
    }
    root = write_files(tmp_path / "docs", files)
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        report = await index.refresh()
        reasons = {item.path: item.reason for item in report.skipped}
        assert report.passages == 1
        with pytest.raises(ToolError, match=r"locked\.pdf cannot be read: encrypted"):
            await index.read("locked.pdf", 1, 100)
    expected = {
        "archive.zip": "archive",
        "binary.md": "binary",
        "blank.md": "empty",
        "bomb.docx": "too large",
        "broken.docx": "broken",
        "broken.pdf": "broken",
        "empty.txt": "empty",
        "entities.docx": "broken",
        "huge.txt": "too large",
        "locked.docx": "encrypted",
        "locked.pdf": "encrypted",
        "scan.pdf": "no text",
    }
    assert reasons.keys() == expected.keys()
    assert {path: word for path, word in expected.items() if word not in reasons[path]} == {}


async def test_every_format_is_found_and_read(tmp_path: Path) -> None:
    root = write_files(
        tmp_path / "docs",
        {
            "badges.html": HTML,
            "leave.docx": docx([("Heading1", "Leave"), ("", "Ask your lead for vacation early.")]),
            "site.pdf": pdf([["Parking is in the yard."], ["Bikes stand by the gate."]]),
            "old.txt": "Café opens at eight.".encode("cp1252"),
            "tool.py": b"def rotate_keys():\n    return 'rotated'\n",
        },
    )
    template = "https://help.example.com/{stem}"
    async with DocIndex(
        root, tmp_path / "data", base_url=template, include="*.py, *.toml", by_words_only=True
    ) as index:
        for query, path in {
            "lost badge": "badges.html",
            "vacation": "leave.docx",
            "where do bikes stand": "site.pdf",
            "cafe": "old.txt",
            "rotate keys": "tool.py",
        }.items():
            hit = (await index.search(query, 1))[0]
            assert hit.passage.path == path
            assert hit.is_good
        bikes = (await index.search("bikes", 1))[0].passage
        assert (bikes.page, bikes.url) == (2, "https://help.example.com/site")
        part = await index.read("site.pdf", bikes.line, 500)
        assert part.text == "Bikes stand by the gate."
        assert "rotated" in (await index.read("tool.py", 1, 500)).text


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, None),
        ("https://h.example/docs/", "https://h.example/docs/a%20b/x.pdf#page=3"),
        ("https://h.example/{stem}.html#{anchor}", "https://h.example/a%20b/x.html#lost-badge"),
        ("https://h.example/{path}#L{line}", "https://h.example/a%20b/x.pdf#L7"),
        ("https://h.example/{path}?p={page}", "https://h.example/a%20b/x.pdf?p=3"),
    ],
)
def test_links_follow_the_template(template: str | None, expected: str | None) -> None:
    assert Links(template).url("a b/x.pdf", "Badges > Lost badge?", 7, 3) == expected


@pytest.mark.parametrize("template", ["ftp://x/", "https://x/{nope}", "https://x/{path", "{path}"])
def test_a_bad_template_is_refused_at_start(template: str) -> None:
    with pytest.raises(ConfigError, match="DOCS_BASE_URL"):
        Links(template)


def test_an_anchor_is_named_as_site_builders_do() -> None:
    assert anchor("What's new in 2.0?") == "whats-new-in-20"
