"""Questions in other languages: the guess of the language, and which model is asked."""

from pathlib import Path

import pytest

from core.search import DocIndex
from core.search.embedder import Universal, multilingual
from core.search.language import language_of
from core.search.meaning import (
    ENGLISH_WEIGHT,
    FOREIGN_WEIGHT,
    GUESS_WEIGHT,
    OWN_WEIGHT,
    Languages,
    Meanings,
)
from tests.support_meaning import ScriptedEmbedder
from tests.support_search import RESUME_CENTER, paths, write_files


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I delete my account?", "en"),
        ("Wie lösche ich mein Konto?", "de"),
        ("¿Cómo elimino mi cuenta?", "es"),
        ("Comment supprimer mon compte ?", "fr"),
        ("Come posso eliminare il mio account?", "it"),
        ("Como é que apago a minha conta?", "pt"),
        ("Hoe verwijder ik mijn account?", "nl"),
        ("Jak mogę usunąć moje konto?", "pl"),
        ("Hesabımı nasıl silebilirim?", "tr"),
        ("Hur tar jag bort mitt konto?", "sv"),
        ("Как мне удалить аккаунт?", "ru"),
        ("如何删除我的账户？", "zh"),
        ("アカウントを削除する方法は？", "ja"),
        ("계정을 삭제하려면 어떻게 하나요?", "ko"),
        ("ฉันจะลบบัญชีได้อย่างไร", "th"),
        ("كيف أحذف حسابي؟", "ar"),
        ("Gmail strikethrough", None),
        ("404 ???", None),
        ("", None),
    ],
)
def test_the_language_of_a_question(text: str, language: str | None) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("question", "shares", "has_extra", "model", "weight"),
    [
        ("How do I delete it?", {"en": 1.0}, True, "english", ENGLISH_WEIGHT),
        ("How do I delete it?", {"en": 1.0}, False, "english", ENGLISH_WEIGHT),
        ("Gmail strikethrough", {"en": 1.0}, True, "english", ENGLISH_WEIGHT),
        ("Gmail strikethrough", {}, True, "english", ENGLISH_WEIGHT),
        ("Wie lösche ich das?", {"en": 1.0}, True, "extra", FOREIGN_WEIGHT),
        ("Wie lösche ich das?", {"en": 0.5, "de": 0.5}, True, "extra", OWN_WEIGHT),
        ("Wie lösche ich das?", {"de": 1.0}, False, "english", GUESS_WEIGHT),
        ("Wie lösche ich das?", {"en": 1.0}, False, "english", ENGLISH_WEIGHT),
        ("How do I delete it?", {"de": 1.0}, True, "extra", FOREIGN_WEIGHT),
        ("Gmail", {"de": 1.0}, True, "extra", OWN_WEIGHT),
    ],
)
def test_the_question_decides_which_model_is_asked(
    tmp_path: Path,
    question: str,
    shares: dict[str, float],
    has_extra: bool,
    model: str,
    weight: float,
) -> None:
    extra = ScriptedEmbedder({}, "extra") if has_extra else None
    meanings = Meanings(tmp_path, ScriptedEmbedder({}, "english"), extra)
    chosen, chosen_weight = meanings._route(question, Languages(shares, 10))
    assert (chosen.id, chosen_weight) == (model, weight)


async def test_a_question_in_another_language_finds_the_documents(tmp_path: Path) -> None:
    english = ScriptedEmbedder({"holiday": 1}, "english")
    extra = ScriptedEmbedder({"holiday": 1, "urlaub": 1, "desk": 2}, "extra")
    files = {
        "leave.md": "# Time away\n\nHow many holidays you have is in your contract.\n",
        "desk.md": "# Desks\n\nA desk is booked in the calendar for a day.\n",
    }
    root = write_files(tmp_path / "docs", files)
    async with DocIndex(root, tmp_path / "data", embedder=english, multilingual=extra) as index:
        assert await paths(index, "Wie viel Urlaub habe ich?") == []
        assert await index.embed()
        hits = await index.search("Wie viel Urlaub habe ich?", 3)
        assert (hits[0].passage.path, hits[0].is_good) == ("leave.md", True)
        asked = len(extra.texts)
        assert (await paths(index, "When are my holidays?"))[0] == "leave.md"
        assert len(extra.texts) == asked, "an English question leaves the extra alone"


@pytest.mark.skipif(multilingual() is None, reason="the extra multilingual is not installed")
async def test_the_real_extra_finds_english_text_from_four_languages(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data", multilingual=Universal()) as index:
        assert await index.embed()
        for question in (
            "Wie spreche ich über mein Gehalt?",
            "¿Cómo hablo de mi salario?",
            "怎么谈薪水？",
            "Как говорить о зарплате?",
        ):
            assert (await paths(index, question))[0] == "interviews/salary.md", question
