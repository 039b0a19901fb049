"""What counts as a word: stems, compounds and their parts, marks, scripts without spaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.analyzer import MAX_TOKEN_CHARS, Analyzer


@pytest.fixture(scope="module")
def analyzer() -> Analyzer:
    return Analyzer()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I delete my resumes?", ["delet", "resum"]),
        ("foo_bar", ["foobar", "foo", "bar"]),
        ("loadTeamRoster", ["loadteamrost", "load", "team", "roster"]),
        ("POL-B17", ["polb17", "pol", "b17"]),
        ("E4021", ["e4021", "4021"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("APIs and URLs", ["api", "url"]),
        ("e-mail", ["email", "mail"]),
        ("the user's résumé", ["user", "resum", "résumé"]),
        ("Straße ﬁne Ｗｉｄｅ", ["strass", "fine", "wide"]),
        ("3.5 is not 35", ["3.5", "3", "5", "35"]),
        ("1,000 files", ["1000", "file"]),
        ("C++ or C# or F#", ["c++", "c#", "f#"]),
        ("I'd ask what's new", ["ask", "new"]),
        ("l'équipe", ["equip", "équipe"]),
        ("Who is IT?", ["it"]),
        ("WHO IS IT", []),
        ("接続手順", ["接続", "続手", "手順"]),
        ("VPN 接続", ["vpn", "接続"]),
        ("税", ["税"]),
        ("ﾃｽﾄ", ["テス", "スト"]),
        ("книги о ёлках", ["книг", "о", "елк"]),
        ("??? -- ''", []),
    ],
)
def test_a_question_becomes_these_terms(analyzer: Analyzer, text: str, expected: list[str]) -> None:
    assert list(analyzer.terms(text)) == expected


def test_an_exact_identifier_weighs_more_than_a_word_and_its_parts_less(
    analyzer: Analyzer,
) -> None:
    weights = analyzer.terms("team_id for badges")
    assert weights["teamid"] > weights["badg"] > weights["team"] == weights["id"] > 0
    assert analyzer.terms("the team of team_id")["team"] == weights["badg"]


def test_a_document_keeps_single_characters_of_a_run(analyzer: Analyzer) -> None:
    assert set(analyzer.tokens("税金")) == {"税", "金", "税金"}


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("load_team_roster", "loadTeamRoster"),
        ("wifi", "Wi-Fi"),
        ("email", "e-mails"),
        ("resume", "résumé"),
        ("naïve", "naive"),
        ("Zürich", "zurich"),
        ("DON’T PANIC", "panic"),
    ],
)
def test_ways_to_write_the_same_meet(analyzer: Analyzer, document: str, query: str) -> None:
    assert set(analyzer.terms(query)) & set(analyzer.tokens(document))


@given(st.text(max_size=300))
def test_any_text_gives_tokens_the_engine_can_take(text: str) -> None:
    for token in Analyzer().tokens(text):
        assert token
        assert not any(char.isspace() for char in token)
        assert len(token) <= max(MAX_TOKEN_CHARS, len(text))
