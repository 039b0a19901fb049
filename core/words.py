"""Whether a text was said by the user: its content words, with what is negated, in one message.

It must not know facts, memory or any platform; it compares one text with others and nothing else.

Decided here:

- A negation is never a stop word. Each content word is compared together with its polarity, so
  "I do not like tea" supports "does not like tea" and neither "likes tea" nor "tea". A negation
  reaches to the end of its clause, or over all of it where it stands last or belongs to a language
  that puts it there. When in doubt a value is not supported; the user's own clause always is.
- Zero-width and other invisible characters are dropped before comparing. Look-alike letters of
  another script are other letters, and so never match.
- English function words are always free; those of another language only when the user's message
  has at least two of them, so that no foreign "die" or "war" comes in for nothing.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

_Form = tuple[str, str]
_Term = tuple[str, bool]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP: dict[str, str] = {
    "en": "a an the this that these those i me my mine myself we us our ours you your yours he him "
    "his she her hers it its they them their theirs who whom which what there here am is are was "
    "were be been being do does did have has had having will would can could shall should may "
    "might of in on at to by for from with about into as and or if then than too very so just "
    "also please user users how when where why",
    "de": "ich du er sie es wir ihr mein meine meinen meinem meiner dein ein eine einen einem "
    "einer der die das den dem des bin bist ist sind war habe hat haben und oder in im am an auf "
    "aus bei mit von zu zum zur für als wie dass auch",
    "fr": "je j tu il elle nous vous ils elles mon ma mes ton ta tes son sa ses un une des le la "
    "les du de au aux et ou en dans à par pour avec sur suis es est sommes sont ai as a avons ont "
    "que qui ce cette",
    "es": "yo tú él ella nosotros ellos mi mis tu tus su sus un una unos unas el la los las de del "
    "al a en con por para y o soy eres es somos son estoy está tengo tiene he ha que me se lo",
    "pt": "eu tu ele ela nós eles meu minha meus minhas seu sua um uma os as o a de do da dos das "
    "em na com por para e ou sou é são estou está tenho tem que me se",
    "it": "io tu lui lei noi loro mio mia miei mie suo sua un uno una il lo la i gli le di del "
    "della dei a al alla in nel nella con per da e o sono sei è siamo ho ha che mi si",
    "nl": "ik jij je hij zij ze wij we mijn jouw zijn haar een de het en of in op aan van met voor "
    "bij naar als ben bent is heb heeft hebben dat die ook",
    "pl": "ja ty on ona my oni mój moja moje jest jestem są mam ma w we z ze na do o od i oraz lub "
    "że się to",
    "ru": "я ты он она мы они мой моя моё мои меня мне у в во на с со и или к по от до из за о об "
    "это есть был была что как",
}

# Words that negate what follows in their clause, in any language: where two languages disagree
# on a word, the cost is a refusal that quoting the user's clause resolves.
_NEGATIONS = _set(
    "not no never none nobody nothing neither nor without non cannot dont doesnt didnt cant wont "
    "isnt arent wasnt werent wouldnt shouldnt couldnt havent hasnt hadnt aint hardly barely "
    "kein keine keinen keinem keiner keines nie niemals ohne weder aucun aucune sans ni nunca "
    "jamás sin tampoco ninguna ninguno não nem sem jamais mai senza né nessuno nessuna geen nooit "
    "zonder nie bez не нет никогда без ни нема немає ні nem nincs nu inte ingen ikke aldrig uten "
    "utan ei tidak bukan لا ليس لم لن لست بدون לא אין בלי δεν μη όχι χωρίς"
)
# Those that may stand after what they negate: they reach over the whole clause.
_NEGATIONS_BOTH_WAYS = _set("nicht niet pas rien değil yok नहीं नही không")
_NEGATION = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(_NEGATIONS | _NEGATIONS_BOTH_WAYS))})(?!\w)")
_NEGATION_WITHOUT_SPACES = re.compile(
    "不|没|沒|无|無|未|别|別|勿|ない|ません|なく|않|못|없|아니|ไม่|(?<![가-힣])안(?![가-힣])"
)
_NO_NEGATION_AFTER_ALL = re.compile(
    r"(?:do not|don't|dont|never)(?: ever)? forget|not to forget|nicht vergessen"
    r"|vergiss (?:bitte )?nicht|n'oublie[rz]? pas|no (?:te |se )?olvid(?:es|e|ar)"
    r"|não (?:se )?esque[çc]as?|non dimenticare|vergeet niet|не забуд(?:ь|ьте)|не забывай(?:те)?"
    r"|别忘了?|別忘了?|忘れないで"
    r"|잊지 ?마|why not|not only|not just|no problem|no worries|不错|不錯|没关系|没问题|不好意思"
    r"|無料"
)
_CONJUNCTIONS = _set(
    "but however although though because aber sondern weil mais pero porque sino maar но зато "
    "потому"
)
_PRONOUNS = _set("i ich je yo eu ik я")
_OPINIONS = _set(
    "think believe know suppose say said sure certain true mean want wish guess glaube denke weiss "
    "weiß creo pienso pense crois acho penso credo думаю считаю"
)

_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
# Scripts written without spaces, and Korean, whose particles stick to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"


@cache
def _token_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<number>\d+(?:[.:/-]\d+)+)|(?P<run>[{_UNSPACED}]+)"
        rf"|(?P<word>(?:(?![{_UNSPACED}])[^\W_]|[{_MARKS}])+[+#]{{0,2}})"
        r"|(?P<stop>[.!?;,\n。、؟،।()—]|\s-\s)|(?P<symbol>[^\w\s])"
    )


def own_words(text: str) -> str:
    """`text` without what is not the user's: quoted lines, fenced code, text in quotation marks."""
    text = "\n".join(text.replace("&gt;", ">").split("```")[::2])
    kept: list[str] = []
    is_code = False
    for line in text.splitlines():
        start = line.lstrip()
        if start.startswith("~~~"):
            is_code = not is_code
        elif start.startswith(">>>"):  # in chats this quotes all the rest
            break
        elif not is_code and not start.startswith((">", "＞")):
            kept.append(line)
    return _quotations().sub(" … ", "\n".join(kept))


@cache
def _quotations() -> re.Pattern[str]:
    # Opening and closing marks differ, or stand at the edge of a word; each is bounded.
    pairs = ("“”", "„“", "„”", "«»", "»«", "‹›", "「」", "『』", "《》")
    marks = [rf"{a}[^{a}{b}]{{1,4000}}{b}" for a, b in pairs]
    marks.append(r"[‘‚](?:[^‘’\n]|’(?=\w)){1,400}[’‘](?!\w)")
    marks.append(r'(?<!\w)"(?=\S)[^"]{1,4000}"(?!\w)')
    marks.append(r"(?<!\w)'(?=\S)(?:[^'\n]|'(?=\w)){1,400}'(?!\w)")
    return re.compile("|".join(marks))


def is_invisible(char: str) -> bool:
    """Whether `char` shows nothing although Unicode counts it as a letter, mark or symbol."""
    return char in _INVISIBLE or "\ufe00" <= char < "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def normalised(text: str) -> str:
    """`text` in NFKC, case folded, without format and other invisible characters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if folded.isascii():
        return folded
    return "".join(
        char
        for char in folded
        if unicodedata.category(char) != "Cf" and char != "\ufe0f" and not is_invisible(char)
    )


def has_negation(text: str) -> bool:
    """Whether a word of `text` negates."""
    return _NEGATION.search(text) is not None


def supported_by(value: str, user_texts: Sequence[str]) -> bool:
    """Whether every content word of `value` stands, as negated or not, in ONE of `user_texts`.

    `user_texts` are whole messages of the user; what they quote does not count. A value without
    a content word is not supported.
    """
    wanted = list(_terms(value))
    if has_negation(normalised(value)) and not any(is_negated for _, is_negated in wanted):
        return False  # "tea, not": it negates, and nobody can say what
    return any(_is_in(wanted, own_words(text)) for text in user_texts)


def _is_in(wanted: Sequence[_Term], text: str) -> bool:
    said = list(_terms(text))
    words = {word for word, _ in said}
    free = set[str]()
    for language in _STOP:
        stop_words = _stop_words(language)
        if language == "en" or len(words & stop_words) >= 2:
            free |= stop_words
    content = [term for term in wanted if term[0] not in free]
    if not any(word[0].isalnum() for word, _ in content):
        return False
    forms = {(form, is_negated) for word, is_negated in said for form in _forms(word)}
    # A value may be a single character of a script without spaces, such as 猫.
    forms |= {
        (("", char), is_negated) for word, is_negated in said if _is_unspaced(word) for char in word
    }
    return all(
        any((form, is_negated) in forms for form in _forms(word)) for word, is_negated in content
    )


@cache
def _stop_words(language: str) -> frozenset[str]:
    return _set(_STOP[language])


def _terms(text: str) -> Iterator[_Term]:
    """The words of `text`, stop words included, each with whether it is negated.

    A symbol such as an emoji or a currency sign is a term too, never negated.
    """
    text = normalised(text)
    text = re.sub("[’ʼ‘`´]", "'", text)
    text = _NO_NEGATION_AFTER_ALL.sub(" ", text)
    text = re.sub(r"(?<=n)n't\b|n't\b", " not", text)
    text = re.sub(r"(?<=\w)'(?:s|m|re|ve|ll|d)\b|\b(?:[ljdncmts]|qu)'(?=\w)", " ", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    clause: list[str] = []
    for match in _token_pattern().finditer(text):
        token = match.group()
        if match.lastgroup == "stop":
            yield from _polarised(clause)
            clause = []
        elif match.lastgroup == "symbol":
            if unicodedata.category(token) in ("So", "Sc"):
                yield token, False
        elif token in _CONJUNCTIONS or (token in _PRONOUNS and _ends_scope(clause)):
            yield from _polarised(clause)
            clause = [token]
        else:
            clause.append(token)
    yield from _polarised(clause)


def _ends_scope(clause: Sequence[str]) -> bool:
    """Whether a new subject begins a new statement, unlike in "I don't think I like tea"."""
    content = [word for word in clause if word not in _stop_words("en")]
    return len(content) >= 3 and content[-1] not in _OPINIONS


def _polarised(clause: Sequence[str]) -> Iterator[_Term]:
    first, last = len(clause), -1
    is_all = _NEGATION_WITHOUT_SPACES.search(" ".join(clause)) is not None
    for at, word in enumerate(clause):
        if word in _NEGATIONS or word in _NEGATIONS_BOTH_WAYS:
            first, last = min(first, at), at
            is_all = is_all or word in _NEGATIONS_BOTH_WAYS
    # "Tea is not for me": nothing that means something follows, so it goes back.
    is_all = is_all or (last >= 0 and all(w in _stop_words("en") for w in clause[last + 1 :]))
    for at, word in enumerate(clause):
        if word in _NEGATIONS or word in _NEGATIONS_BOTH_WAYS:
            continue
        is_negated = is_all or at > first
        if len(word) > 2 and _is_unspaced(word):
            for start in range(len(word) - 1):
                yield word[start : start + 2], is_negated
        else:
            yield word, is_negated


def _is_unspaced(word: str) -> bool:
    return re.match(f"[{_UNSPACED}]", word) is not None


@lru_cache(maxsize=8192)
def _forms(word: str) -> frozenset[_Form]:
    """`word` itself and its stem in each language of its script."""
    languages = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
    if word.isdecimal() or not word[0].isalpha():
        languages = ()
    elif "\u0370" <= word[0] <= "\u03ff":
        languages = ("greek",)
    elif "\u0400" <= word[0] <= "\u04ff":
        languages = ("russian",)
    elif "\u0600" <= word[0] <= "\u06ff":
        languages = ("arabic",)
    elif "\u0900" <= word[0] <= "\u097f":
        languages = ("hindi",)
    elif word[0] > "\u024f":
        languages = ()
    stems = {(language, _stemmer(language)(word)) for language in languages}
    return frozenset(stems | {("", word)})


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    # Imported here, so that importing this module stays cheap; it comes without types.
    stemmer: Any = import_module("Stemmer")
    return stemmer.Stemmer(language).stemWord
