"""The walk over the documents: links, loops, mounts of settings, odd names."""

import os
from pathlib import Path

import pytest

from core.search.folder import Folder
from tests.support_search import write_files

SUFFIXES = frozenset({".md", ".txt"})


def test_links_inside_count_once_and_loops_end(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "a", "sub/b.md": "b"})
    (root / "again.md").symlink_to(root / "a.md")
    (root / "sub/up").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "other").symlink_to(root / "sub")
    files, skipped = Folder(root, SUFFIXES).scan()
    assert set(files) == {"a.md", "sub/b.md"}
    assert [(item.path, item.reason) for item in skipped] == [("self", "a link that leads nowhere")]


def test_links_to_the_outside_are_refused_whatever_they_name(tmp_path: Path) -> None:
    write_files(tmp_path / "secret", {"s.md": "secret"})
    root = write_files(tmp_path / "docs", {"a.md": "a"})
    (root / "folder").symlink_to(tmp_path / "secret")
    (root / "file.md").symlink_to(tmp_path / "secret/s.md")
    (root / "hop").symlink_to(root / "folder")
    folder = Folder(root, SUFFIXES)
    files, skipped = folder.scan()
    assert set(files) == {"a.md"}
    assert {item.path for item in skipped} == {"folder", "file.md", "hop"}
    assert all("outside" in item.reason for item in skipped)
    for path in ("folder/s.md", "file.md", "hop/s.md", "../secret/s.md", "a.md/../../x"):
        assert folder.resolve(path) is None


def test_a_mount_of_settings_is_read_through_its_links(tmp_path: Path) -> None:
    """Kubernetes mounts files as links through `..data`, which it swaps to update them all."""
    root = write_files(tmp_path / "docs", {"..2024/faq.md": "one", "..2025/faq.md": "two"})
    (root / "..data").symlink_to("..2024")
    (root / "faq.md").symlink_to("..data/faq.md")
    folder = Folder(root, SUFFIXES)
    assert set(folder.scan()[0]) == {"faq.md"}
    (root / "..data").unlink()
    (root / "..data").symlink_to("..2025")
    target = folder.resolve("faq.md")
    assert target is not None
    assert target.read_text() == "two"


def test_hidden_and_generated_folders_and_other_types_are_left_out(tmp_path: Path) -> None:
    root = write_files(
        tmp_path / "docs",
        {
            "a.md": "a",
            ".git/config.md": "x",
            "node_modules/pkg/readme.md": "x",
            "photo.png": "x",
            "dump.tar": "x",
            "conf/app.toml": "x",
            "conf/main.py": "x",
        },
    )
    files, skipped = Folder(root, SUFFIXES, "*.toml conf/*.py").scan()
    assert set(files) == {"a.md", "conf/app.toml", "conf/main.py"}
    assert [item.path for item in skipped] == ["dump.tar"]


def test_a_name_that_is_not_utf8_is_named_as_skipped(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "a", "ünï 日本.md": "b"})
    try:
        (root / os.fsdecode(b"bad\xff.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes no such names")
    files, skipped = Folder(root, SUFFIXES).scan()
    assert set(files) == {"a.md", "ünï 日本.md"}
    assert [(item.path, item.reason) for item in skipped] == [
        ("bad?.md", "a name that is not UTF-8")
    ]


def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "a"})
    os.mkfifo(root / "pipe.md")
    assert set(Folder(root, SUFFIXES).scan()[0]) == {"a.md"}
