"""How people and code write down a password or a PIN: "my password is …", in many languages.

It must not know tokens with a form of their own; those stand in `core.secret_patterns`.

What follows the name decides. A number, a mixed token or a quoted phrase is a secret; so is a
plain word, unless it belongs to talk about passwords ("the password is wrong", "is stored
hashed") or reads like code (`password = settings.password`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from core.password_talk import FUNCTION_WORDS, PLACEHOLDERS, TALK, UNITS

# Where to look (a part of the name, in lower case), the names of a password in a language, and
# the verbs that may follow them.
_LANGUAGES = (
    (
        "pass¦pw¦wifi¦wi-fi¦wlan",
        r"pass ?word|passwd|pass ?phrase|pass ?code|\bpwd|\bpw|(?:wi-?fi|wlan)[ -](?:key|code)",
        "is|was|will be|ist|lautet|est|c['’]est|es|è|é|jest",
    ),
    ("wort¦code", r"passwort|kennwort|zugangscode", "ist|lautet|war"),
    ("mot de¦mdp", r"mot de passe|\bmdp", "est|c['’]est|était"),
    ("contrase", r"contrase[ñn]a", "es|era"),
    ("senha¦palavra", r"\bsenha|palavra[- ]passe", "é|e|era"),
    ("parola", r"parola d['’]ordine", "è|e|era"),
    ("wacht¦toegang", r"wachtwoord|toegangscode", "is|was"),
    ("has¦hes", r"\bhasło|\bheslo", "to|brzmi|jest|je"),
    ("lösen¦adgang¦passord", r"lösenord(?:et)?|adgangskoden?|passord(?:et)?", "är|er"),
    ("salasana", r"salasana(?:ni)?", "on"),
    ("jelsz", r"jelszó|jelszavam", "az?"),
    ("ifre¦parola", r"\bşifrem?|\bparolam?", "şu|bu"),
    ("mật¦sandi", r"mật khẩu|kata sandi", "là|adalah"),
    ("парол", r"парол[ья]", "это|был"),
    ("κωδικ", r"κωδικός(?: πρόσβασης)?", "είναι"),
    ("كلمة", r"كلمة (?:السر|المرور)", "هي"),
    ("סיסמ", r"סיסמ(?:ה|תי|א)(?: שלי)?", "היא"),
    ("पासवर्ड", r"पासवर्ड", "है"),
)
# Ordinary words that can mean a password ("la clave es la paciencia"): only with a digit.
_DOUBTFUL = (
    "clave¦parola¦losung¦lozinka¦code¦pass",
    r"\b(?:clave|parola|losung|lozinka|code secret|pass(?=\s?[:=]))",
    "es|era|est|è|este|je|ist",
)
_UNSPACED = "密码|密碼|口令|パスワード|비밀번호|암호|รหัสผ่าน"
_PIN = (
    r"\b(?:pin(?:[ -]?(?:code|number|nummer|kod))?|pincode|otp|geheimzahl|code pin"
    r"|código pin|пин(?:-?код)?|(?:security|verification|one[- ]time|login|2fa|access|door|alarm"
    r"|gate|entry|safe) code|code for the (?:alarm|door|gate|safe|lock|phone|card))\b#?"
)
_FOR = (
    r"(?:\s{1,3}(?:for|to|of|on|at|i use|we use|für|zum|zur|vom|von|du|de|para|do|da|per|del|pour"
    r"|voor|van|от|для|till|til)(?:\s{1,3}[\w'’.@-]{1,30}){1,4}?)?"
)
_SEPARATOR = r"\s{0,3}(?::=|->|=>|→|[:=：]|>(?=\S))\*{0,2}\s{0,3}(?:is\s{1,3})?|\s{1,3}[–—-]\s{1,3}"
_STILL = r"(?:\s{1,3}(?:still|now|just|simply|jetzt|noch))?\s{0,3}[:–—-]?\s{1,3}"
_VALUE = (
    r"\*{0,2}(?P<secret>\"[^\"\n]{3,80}\"|“[^”\n]{3,80}”|'[^'\n]{3,80}'|`[^`\n]{3,80}`"
    r"|[^\s,;\"“”`<]{3,})"
)
_WITH_DIGIT = r"(?P<secret>(?=\S{0,200}\d)[^\s,;:=()\"<>]{4,200})(?![^\s,;.])"
_MINE = (
    r"\s{1,3}(?:is|as)\s{1,3}(?:my|the|our|your)(?:\s{1,3}\w{1,20}){0,2}?\s{1,3}"
    r"(?:password|passcode|passphrase|(?P<pin>pin))"
    r"(?=\s{0,3}(?:$|[.,;!?)\n]|(?:for|to|of|and|but|so|on|at)\b))"
)
_DIGITS = (
    r"#?(?P<secret>\d{4,8}|\d(?: \d){3,5}|\d{2}[ -]\d{2}(?:[ -]\d{2})?)(?![0-9A-Za-z_%]|[.,-]\d)"
)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """`hints`: the pattern is only tried when one of them is in the lower-case text."""

    kind: str
    hints: tuple[str, ...]
    source: str
    needs_digit: bool = False


def _form(kind: str, hints: str, pattern: str, *, needs_digit: bool = False) -> _Form:
    return _Form(kind, tuple(hints.split("¦")), pattern, needs_digit)


@cache
def _forms() -> tuple[_Form, ...]:
    forms: list[_Form] = []
    for language in (*_LANGUAGES, _DOUBTFUL):
        hints, names, verbs = language
        name = rf"(?:{names})[\"'*]{{0,3}}{_FOR}"
        verb = rf"(?:\s{{1,3}}(?:{verbs})|['’]s){_STILL}"
        pattern = f"{name}(?:{_SEPARATOR}|{verb}){_VALUE}"
        forms.append(_form("password", hints, pattern, needs_digit=language is _DOUBTFUL))
    unspaced = rf"(?:{_UNSPACED})\s?(?:是|为|為|は|:|：|=|은|는|가|คือ)\s?"
    pins = r"\s{1,3}(?:is|was|ist|lautet|est|es|é|è|er|är|to|on)" + _STILL
    hints = _UNSPACED.replace("|", "¦")
    return (
        *forms,
        _form(
            "password",
            "pass¦pw¦wachtwoord¦парол¦पासवर्ड",
            r"(?:pass ?word|pass ?phrase|pass ?code|passwort|wachtwoord|парол[ья]|पासवर्ड)\s{1,3}"
            rf"(?:(?:has been |was |is )?(?:changed |set |reset )?to\s{{1,3}})?{_WITH_DIGIT}",
            needs_digit=True,
        ),
        _form(
            "password", hints, rf"{unspaced}[「“\"']?(?P<secret>[!-~]{{4,60}})", needs_digit=True
        ),
        _form("password", hints, rf"{unspaced}(?P<secret>[「“][^」”\n]{{3,40}})"),
        _form(
            "pin",
            "pin¦otp¦geheimzahl¦пин¦code",
            rf"{_PIN}[\"'*]{{0,3}}{_FOR}(?:{_SEPARATOR}|{pins}|\s{{1,3}})[\"'*]{{0,3}}{_DIGITS}",
        ),
        _form(
            "pin",
            "cvv¦cvc",
            rf"\b(?:cvv2?|cvc2?)\b(?:{_SEPARATOR}|{pins}|\s{{1,3}})(?P<secret>\d{{3,4}})(?!\w)",
        ),
        _form(
            "password",
            "credentials",
            rf"\bcredentials(?:{_SEPARATOR}|\s{{1,3}}are{_STILL})"
            rf"[\w.@+-]{{2,40}} ?[/:] ?{_WITH_DIGIT}",
            needs_digit=True,
        ),
        _form(
            "password",
            "парол",
            r"(?:мой|твой|наш|новый)\s{1,3}пароль\s{1,3}(?P<secret>[!-~]{4,60})(?![^\n.,;])",
        ),
        _form("pin", "暗証番号¦pin码", rf"(?:暗証番号|pin码)\s?(?:是|は|:|：)\s?{_DIGITS}"),
    )


def _hinted(lowered: str) -> Iterator[_Form]:
    for form in _forms():
        for hint in form.hints:
            if hint in lowered:
                yield form
                break


def find_spoken(text: str) -> Iterator[tuple[str, int, int]]:
    """The kind ("password" or "pin"), start and end of each one in `text`."""
    lowered = text.lower()
    for form in _hinted(lowered):
        for match in _compiled(form.source).finditer(text):
            start, end = match.span("secret")
            rest = text[end : end + 60]
            if (
                not UNITS.match(rest.lstrip())
                if form.kind == "pin"
                else _is_secret(text[start:end], rest, needs_digit=form.needs_digit)
            ):
                yield form.kind, start, end
    if not any(hint in lowered for hint in ("pass", "pin")):
        return
    for match in _compiled(_MINE).finditer(text):
        before = text[max(0, match.start() - 64) : match.start()].rsplit(maxsplit=1)
        word = before[-1] if before else ""
        if any(char.isdigit() for char in word) and len(word.strip("\"'`")) >= 4:
            kind = "pin" if match["pin"] else "password"
            yield kind, match.start() - len(word), match.start()


_CODE = re.compile(
    r"[=/&|!].*|@[\w.-]+[/:].*|.*[(\[{].*|\$.*|%.*|[*•x.…_-]+|https?:.*|n/a|tbd|redacted.*"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|(?:your|my|the|some|new|old|user|db)[-_]\w+|\w*(?:password|passwort)",
    re.IGNORECASE,
)


def _is_secret(value: str, rest: str, *, needs_digit: bool) -> bool:
    is_quoted = value[0] in "\"'`“「"
    bare = value.strip("\"'`“”「」") if is_quoted else value.rstrip(".,!?:;)*}]")
    if len(bare) < 3 or _CODE.fullmatch(bare) or (needs_digit and not re.search(r"\d", bare)):
        return False
    word = re.sub(r"['’]\w{1,2}$", "", bare).casefold()
    if is_quoted and word in TALK and word not in PLACEHOLDERS:
        return True
    if word in TALK:
        # "correct horse battery staple" is no talk.
        return (
            word == "correct"
            and bool(re.match(r"\s+[a-z]", rest))
            and not FUNCTION_WORDS.match(rest)
        )
    if is_quoted and " " in bare:
        return len(bare.split()) > 3 or bare.split()[0].casefold() not in TALK
    length = re.fullmatch(r"\d{1,3}(?:[-–+]\d{0,3})?-?([a-z]*)", word)
    if length and (UNITS.match(length[1]) or UNITS.match(rest.lstrip(" -"))):
        return False
    parts = word.split("-")
    if all(part.isalpha() for part in parts):
        if len(parts) == 2 and (parts[1].endswith("ed") or any(part in TALK for part in parts)):
            return False
        return len(parts) > 1 or is_quoted or not (word.endswith("ed") and len(word) > 4)
    return True
