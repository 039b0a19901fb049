"""Owns the guess of which language a text is in, from its script and its commonest words.

It must not know what depends on the answer.
"""

import re
from collections.abc import Mapping

_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("ja", "\u3041-\u3096\u30a1-\u30fa\u30fc"),
    ("ko", "\uac00-\ud7af\u1100-\u11ff"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff"),
    ("ru", "\u0400-\u052f"),
    ("el", "\u0370-\u03ff"),
    ("ar", "\u0600-\u06ff"),
    ("he", "\u0590-\u05ff"),
    ("th", "\u0e00-\u0e7f"),
    ("hi", "\u0900-\u097f"),
)
"""Kana before Han: a Japanese text holds both."""

_WORDS = {
    "en": (
        "the of and to in is are was were do does did how what when where which who why can i "
        "my a an for on with from it this that these you your we our be have has will would "
        "should could if or at by as not there their they get make use about into than many "
        "much"
    ),
    "de": (
        "der die das den dem des ein eine einen einem einer und ist sind war waren wie was wann "
        "wo welche welchem welchen welcher welches heißt hieß wer warum wieso kann können ich "
        "mein meine meinen wir unser ihr ihre nicht für mit von zu auf im am bei aus nach über "
        "unter werden wird wurde haben hat hatte es sie er man gibt viele viel zum zur durch "
        "sich um als auch soll muss"
    ),
    "es": (
        "qué ha han cuántas el la los las un una unos unas y es son era eran fue fueron cómo "
        "como que cuándo cuando dónde donde cuál cuáles quién quiénes por para con de del en al "
        "mi mis su sus se no puedo puede hay tiene cuántos cuánto muchos muchas más este esta "
        "lo le sobre sin entre"
    ),
    "fr": (
        "le la les un une des du de et est sont était étaient comment que quoi quand où quel "
        "quelle quels quelles qui pourquoi puis peut je mon ma mes nous notre vous votre vos ne "
        "pas pour avec dans sur au aux ce cette ces il elle on se son sa ses combien plus sans "
        "par en y a"
    ),
    "it": (
        "il lo la i gli le un una uno e è sono era erano come che cosa quando dove quale quali "
        "chi perché posso può mio mia miei mie di del della dei delle da in con su per non si "
        "al alla ai alle nel nella questo questa ho ha quanti quante quanto più senza"
    ),
    "pt": (
        "o a os as um uma uns umas e é são era eram foi como que quando onde qual quais quem "
        "porque posso pode meu minha meus minhas de do da dos das em no na nos nas com para por "
        "não se ao à mais este esta isso seu sua quantos quantas quanto sobre sem entre você"
    ),
    "nl": (
        "de het een en is zijn was waren hoe wat wanneer waar welke wie waarom kan kunnen ik "
        "mijn wij we ons onze je jouw u uw van in op met voor aan bij uit naar over niet er dat "
        "dit deze die te om als ook worden wordt hebben heeft moet veel"
    ),
    "pl": (
        "i w z na do nie się jest są był była było jak co kiedy gdzie który która które kto "
        "dlaczego czy mogę można mój moja moje nasz dla od po przez o ten ta to ile jestem mam "
        "może za"
    ),
    "tr": (
        "ve bir bu ne nasıl nerede hangi kim neden niçin mi mı mu mü için ile benim bizim değil "
        "var yok olarak daha çok kaç nedir olan gibi kadar sonra önce da de ben"
    ),
    "sv": (
        "och är en ett den det som hur vad när var vilken vilka vem varför kan jag min mitt "
        "mina vi vår inte för med av på i till från om att har hade ska måste du din många"
    ),
}


def _by_word() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for language, words in _WORDS.items():
        for word in set(words.split()):
            found[word] = (*found.get(word, ()), language)
    return found


_BY_WORD = _by_word()
_MARKS = {
    "de": "äöüß",
    "es": "¿¡ñáíóú",
    "fr": "çèêàùœ",
    "pt": "ãõçêâ",
    "pl": "łżźśćńęą",
    "tr": "ışğç",
    "sv": "åäö",
    "it": "èàòù",
    "nl": "ëï",
}
"""Letters and signs that are usual in a language and rare in English."""

_MAX_CHARS = 2_000
_MARK_VOTE = 0.3
_LEAD = 0.25
"""By how much the first must be ahead of the second, in words."""

_TOKEN = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """The language's two-letter code; None when the text is too short or mixed to tell."""
    text = text[:_MAX_CHARS]
    if not text.isascii():
        letters = sum(char.isalpha() for char in text) or 1
        for language, characters in _SCRIPTS:
            share = len(re.findall(f"[{characters}]", text)) / letters
            if share > (0.1 if language == "ja" else 0.3):
                return language
    votes: dict[str, float] = dict.fromkeys(_WORDS, 0.0)
    lower = text.lower()
    for word in _TOKEN.findall(lower):
        languages = _BY_WORD.get(word, ())
        for language in languages:
            # A word of many languages tells little of each.
            votes[language] += 1 / len(languages)
    for language, marks in _MARKS.items():
        votes[language] += _MARK_VOTE * sum(mark in lower for mark in marks)
    first, second = sorted(votes, key=lambda language: -votes[language])[:2]
    return first if votes[first] - votes[second] >= _LEAD else None
