"""What the words alone find: common terms, other scripts, identifiers, and nothing made up."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.search import DocIndex
from tests.support_search import paths, write_files


async def opened(tmp_path: Path, files: dict[str, str]) -> DocIndex:
    index = DocIndex(write_files(tmp_path / "docs", files), tmp_path / "data", by_words_only=True)
    await index.open()
    return index


async def test_a_term_in_half_of_the_documents_still_counts(tmp_path: Path) -> None:
    index = await opened(
        tmp_path,
        {
            "a.md": "# Nightly\n\nThe backup runs at two.\n",
            "b.md": "# Restore\n\nA backup is restored from the console.\n",
            "c.md": "# Badges\n\nWear it.\n",
            "d.md": "# Parking\n\nIn the yard.\n",
        },
    )
    assert sorted(await paths(index, "backup")) == ["a.md", "b.md"]
    await index.close()


@pytest.mark.parametrize("copies", [1, 2, 7])
async def test_a_term_in_every_document_still_counts(tmp_path: Path, copies: int) -> None:
    files = {f"{n}.md": f"# Note {n}\n\nThe backup runs at {n}.\n" for n in range(copies)}
    index = await opened(tmp_path, files)
    hits = await index.search("backup", 10)
    assert len(hits) == copies
    assert all(hit.score > 0 for hit in hits)
    await index.close()


@pytest.fixture
async def japanese(tmp_path: Path) -> AsyncIterator[DocIndex]:
    index = await opened(
        tmp_path,
        {
            "vpn.md": "# 社内VPNの接続手順\n\nまず申請書を出します。許可が出たら設定します。\n",
            "zh.md": "# 请假制度\n\n员工每年有十五天带薪年假，提前一周申请。\n",
            "ko.md": "# 휴가 신청\n\n휴가를 신청하려면 양식을 작성하세요.\n",
            "th.md": "# การลา\n\nพนักงานลาพักร้อนได้สิบห้าวัน\n",
        },
    )
    yield index
    await index.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("接続手順", ["vpn.md"]),
        ("VPN 接続", ["vpn.md"]),
        ("vpnの接続", ["vpn.md"]),
        ("申請書", ["vpn.md"]),
        ("年假", ["zh.md"]),
        ("假", ["zh.md"]),
        ("휴가를", ["ko.md"]),
        ("휴가", ["ko.md"]),
        ("ลาพักร้อน", ["th.md"]),
        ("休暇", []),
        ("給与", []),
        ("의자", []),
    ],
)
async def test_scripts_without_spaces_are_found(
    japanese: DocIndex, query: str, expected: list[str]
) -> None:
    assert await paths(japanese, query) == expected


@pytest.fixture
async def identifiers(tmp_path: Path) -> AsyncIterator[DocIndex]:
    index = await opened(
        tmp_path,
        {
            "policy.md": "# Travel policy\n\nForm POL-B17 is for flights.\n",
            "policies.md": "# Other forms\n\nForms POL-A3 and POL-C9 are for trains.\n",
            "field.md": "# Schema\n\nThe column `team_id` names the group.\n",
            "words.md": "# People\n\nEvery team has an id card printer for the team.\n",
            "code.md": "# Code\n\nCall `loadTeamRoster()` when the page opens.\n",
            "prose.md": "# Rosters\n\nThe roster of a team is printed; load paper first.\n",
            "error.md": "# Errors\n\nE4021 means that the disk is full.\n",
            "other.md": "# More errors\n\nE4022 means that the lid is open.\n",
            "dotted.md": "# Config\n\nSet `spring.datasource.url` and version 2.14.1.\n",
        },
    )
    yield index
    await index.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("b17", "policy.md"),
        ("POL-B17", "policy.md"),
        ("pol b17", "policy.md"),
        ("PolB17", "policy.md"),
        ("team_id", "field.md"),
        ("teamId", "field.md"),
        ("loadTeamRoster", "code.md"),
        ("loadteamroster", "code.md"),
        ("load_team_roster", "code.md"),
        ("e4021", "error.md"),
        ("E4021", "error.md"),
        ("4022", "other.md"),
        ("datasource", "dotted.md"),
        ("2.14.1", "dotted.md"),
    ],
)
async def test_identifiers_are_found_whole_and_in_parts(
    identifiers: DocIndex, query: str, first: str
) -> None:
    assert (await paths(identifiers, query))[0] == first


async def test_parts_of_an_identifier_find_both_ways_to_write_it(identifiers: DocIndex) -> None:
    assert set(await paths(identifiers, "team id")) >= {"field.md", "words.md"}
    assert set(await paths(identifiers, "roster")) == {"code.md", "prose.md"}
    assert set(await paths(identifiers, "pol")) == {"policy.md", "policies.md"}


async def test_a_folder_without_a_single_word_answers_nothing(tmp_path: Path) -> None:
    index = await opened(tmp_path, {"a.txt": "??? !!!\n", "b.md": "---\n\n***\n"})
    for query in ("???", "backup", ""):
        assert await paths(index, query) == []
    await index.close()


async def test_a_folder_that_becomes_empty_answers_nothing(tmp_path: Path) -> None:
    index = await opened(tmp_path, {"a.md": "# Backup\n\nThe backup.\n", "b.md": "# B\n\nb\n"})
    write_files(tmp_path / "docs", {"a.md": "", "b.md": ""})
    report = await index.refresh()
    assert report.passages == 0
    assert {item.reason for item in report.skipped} == {"empty"}
    for query in ("???", "backup"):
        assert await paths(index, query) == []
    await index.close()


async def test_a_copy_of_a_document_takes_no_second_place(tmp_path: Path) -> None:
    text = "# Backup\n\nThe backup runs at two.\n"
    other = "# Restore\n\nA backup is restored from the console.\n"
    index = await opened(tmp_path, {"a.md": text, "copy/a.md": text, "b.md": other})
    found = await paths(index, "backup", 2)
    assert found[0] in ("a.md", "copy/a.md")
    assert found[1:] == ["b.md"]
    await index.close()
