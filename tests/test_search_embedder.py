"""The real model and its tokenizer: the ids it was trained on, its vectors, its floor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.search import DocIndex
from core.search.embedder import MiniLM
from core.search.locks import try_lock
from core.search.weights import unpack
from core.search.wordpiece import WordPiece
from tests.support_search import RESUME_CENTER, write_files

HAS_MODEL = sys.platform == "linux" or sys.platform == "win32"
needs_model = pytest.mark.skipif(not HAS_MODEL, reason="the model has no package here")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, WORLD!", "hello , world !"),
        ("Café naïve", "cafe naive"),
        ("unaffable tokenization", "una ##ffa ##ble token ##ization"),
        ("日本語 x", "日 本 語 x"),
        ("a\u200bb\tc\x00", "ab c"),
        ("don't—“quote”", "don ' t — “ quote ”"),
        ("$5.00", "$ 5 . 00"),
        ("x" * 101, "[UNK]"),
        ("", ""),
    ],
)
def test_text_is_cut_as_the_model_was_taught(text: str, pieces: str) -> None:
    words = WordPiece.load()
    names = {number: token for token, number in words._ids.items()}
    ids = words.encode(text, 64)
    assert (names[ids[0]], names[ids[-1]]) == ("[CLS]", "[SEP]")
    assert " ".join(names[number] for number in ids[1:-1]) == pieces


def test_long_text_is_cut_to_what_the_model_reads() -> None:
    ids = WordPiece.load().encode("word " * 1_000, 256)
    assert len(ids) == 256
    assert ids[-1] == 102


@needs_model
def test_like_texts_are_near_and_company_does_not_matter() -> None:
    model = MiniLM()
    texts = [
        "How do I reset my password?",
        "Steps to recover a forgotten login",
        "The recipe needs two eggs and flour.",
        "word " * 300,
        "x",
    ]
    together = model.embed(texts)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert together[0] @ together[1] > 0.5 > 0.3 > together[0] @ together[2]
    alone = np.concatenate([model.embed([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)
    assert model.embed([]).shape == (0, 384)


def test_only_latin_letters_are_understood() -> None:
    model = MiniLM()
    assert model.understands("Wie lange habe ich Urlaub?")
    assert model.understands("404 ???")
    assert not model.understands("休暇はいつですか")
    assert not model.understands("как получить отпуск")


@needs_model
async def test_questions_off_the_topic_get_no_good_hit_from_the_real_model(
    tmp_path: Path,
) -> None:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data") as index:
        assert await index.embed()
        for question in (
            "What is the capital of France?",
            "How tall is Mount Everest?",
            "Which planets have rings?",
            "Who won the world cup in 1998?",
        ):
            assert not any(hit.is_good for hit in await index.search(question, 3)), question
        for question, path in {
            "What goes first on a CV?": "resume-summary.md",
            "why does the ATS garble my columns": "ats-parsing.md",
            "how much pay should I ask for": "interviews/salary.md",
            "how long do you keep my documents": "privacy.txt",
        }.items():
            first = (await index.search(question, 3))[0]
            assert (first.passage.path, first.is_good) == (path, True), question


@needs_model
def test_model_that_is_kept_unpacked_gives_the_same_vectors(tmp_path: Path) -> None:
    texts = ["How do I reset my password?", "word " * 300]
    packed = MiniLM().embed(texts)
    cache = tmp_path / "models"
    first = MiniLM(cache).embed(texts)
    [kept] = cache.glob("minilm-*")
    made_at = (kept / "weights.bin").stat().st_mtime_ns
    again = MiniLM(cache).embed(texts)
    assert np.allclose(packed, first, atol=1e-5)
    assert np.array_equal(first, again)
    assert (kept / "weights.bin").stat().st_mtime_ns == made_at


@needs_model
def test_unpacked_model_that_is_damaged_is_made_again(tmp_path: Path) -> None:
    unpack(tmp_path / "minilm-old-version")
    MiniLM(tmp_path).embed(["x"])
    [kept] = tmp_path.glob("minilm-*")
    assert "old-version" not in kept.name, "of an older runtime nothing is left"
    (kept / "model.onnx").write_bytes(b"nonsense")
    assert len(MiniLM(tmp_path).embed(["x"])) == 1
    assert list(tmp_path.glob("minilm-*")) == []
    MiniLM(tmp_path).embed(["x"])
    assert len(list(tmp_path.glob("minilm-*"))) == 1


@needs_model
def test_model_is_loaded_packed_where_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    assert len(MiniLM(tmp_path / "models").embed(["x"])) == 1


@needs_model
def test_process_that_comes_while_another_unpacks_does_not_wait(tmp_path: Path) -> None:
    with try_lock(tmp_path / "lock") as is_mine:
        assert is_mine
        assert len(MiniLM(tmp_path).embed(["x"])) == 1
    assert list(tmp_path.glob("minilm-*")) == []


@needs_model
def test_the_runtime_keeps_and_sends_no_report_of_its_use(tmp_path: Path) -> None:
    # A process of its own: the runtime decides once, when it is loaded, and never in CI.
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "from core.search.embedder import MiniLM; MiniLM().embed(['a question'])"
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=60)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
