"""How people and code write down a password or a PIN: "my password is …", in many languages.

It must not know tokens with a form of their own; those stand in `core.secret_patterns`.

What follows the name decides. A number, a mixed token or a quoted phrase is a secret; so is a
plain word, unless it belongs to talk about passwords ("the password is wrong", "is stored
hashed") or reads like code (`password = settings.password`).
"""

import re
from collections.abc import Iterator
from functools import cache

from core.password_talk import FUNCTION_WORDS, TALK, UNITS

# The names of a password in a language, and the verbs that may follow them.
_LANGUAGES = (
    (r"pass ?word|passwd|pass ?phrase|pass ?code|\bpwd|\bpw", "is|was|will be"),
    (r"passwort|kennwort|zugangscode", "ist|lautet|war"),
    (r"mot de passe|\bmdp", "est|était"),
    (r"contrase[ñn]a", "es|era"),
    (r"\bsenha|palavra[- ]passe", "é|e|era"),
    (r"parola d['’]ordine", "è|e|era"),
    (r"wachtwoord|toegangscode", "is|was"),
    (r"\bhasło|\bheslo", "to|brzmi|jest|je"),
    (r"lösenord(?:et)?|adgangskoden?|passord(?:et)?", "är|er"),
    (r"salasana(?:ni)?", "on"),
    (r"jelszó|jelszavam", "az?"),
    (r"\bşifrem?|\bparolam?", "şu|bu"),
    (r"mật khẩu|kata sandi", "là|adalah"),
    (r"парол[ья]", "это|был"),
    (r"κωδικός(?: πρόσβασης)?", "είναι"),
    (r"كلمة (?:السر|المرور)", "هي"),
    (r"סיסמ(?:ה|תי|א)", "היא"),
    (r"पासवर्ड", "है"),
)
# Ordinary words that can mean a password ("la clave es la paciencia"): only with a digit.
_DOUBTFUL = (
    r"\b(?:clave|parola|losung|lozinka|code secret|login|pass)",
    "is|es|era|est|è|este|je|ist",
)
_UNSPACED = "密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|รหัสผ่าน"
_PIN = (
    r"\b(?:pin(?:[ -]?(?:code|number|nummer|kod))?|pincode|otp|cvv2?|cvc2?|geheimzahl|code pin"
    r"|código pin|пин(?:-?код)?|(?:security|verification|one[- ]time|login|2fa|access|door|alarm"
    r"|gate|entry) code)\b"
)
_FOR = (
    r"(?:\s{1,3}(?:for|to|of|on|at|i use|we use|für|zum|zur|vom|von|du|de|para|do|da|per|del|pour"
    r"|voor|van|от|для|till|til)(?:\s{1,3}[\w'’.@-]{1,30}){1,4}?)?"
)
_SEPARATOR = r"\s{0,3}(?::=|->|=>|→|[:=：>])\*{0,2}\s{0,3}(?:is\s{1,3})?|\s{1,3}[–—-]\s{1,3}"
_STILL = r"(?:\s{1,3}(?:still|now|just|simply|jetzt|noch))?\s{0,3}:?\s{1,3}"
_VALUE = (
    r"\*{0,2}(?P<secret>\"[^\"\n]{3,80}\"|“[^”\n]{3,80}”|'[^'\n]{3,80}'|`[^`\n]{3,80}`"
    r"|[^\s,;\"“”`<]{3,100})"
)
_WITH_DIGIT = r"(?P<secret>(?=\S{0,60}\d)[^\s,;:=()\"<>]{4,60})(?![^\s,;.])"
_DIGITS = r"(?P<secret>\d{4,8}|\d{2}[ -]\d{2}(?:[ -]\d{2})?)(?![\w%]|[.,-]\d)"


@cache
def _password_forms() -> tuple[tuple[re.Pattern[str], bool], ...]:
    """Each pattern with whether its value must hold a digit."""
    forms: list[tuple[str, bool]] = []
    for names, verbs in (*_LANGUAGES, _DOUBTFUL):
        name = rf"(?:{names})[\"'*]{{0,3}}{_FOR}"
        verb = rf"\s{{1,3}}(?:{verbs}){_STILL}"
        forms.append((f"{name}(?:{_SEPARATOR}|{verb}){_VALUE}", (names, verbs) == _DOUBTFUL))
    forms.append(
        (
            rf"(?:{_LANGUAGES[0][0]}|passwort|wachtwoord|парол[ья])\s{{1,3}}"
            rf"(?:(?:has been |was |is )?(?:changed |set |reset )?to\s{{1,3}})?{_WITH_DIGIT}",
            True,
        )
    )
    forms.append(
        (
            rf"(?:{_UNSPACED})\s?(?:是|为|為|は|:|：|=|은|는|가|คือ)\s?[「“\"']?(?P<secret>[!-~]{{4,60}})",
            True,
        )
    )
    forms.append(
        (
            rf"(?:{_UNSPACED})\s?(?:是|为|為|は|:|：|=|은|는)\s?(?P<secret>[「“][^」”\n]{{3,40}})",
            False,
        )
    )
    return tuple((re.compile(form, re.IGNORECASE), needs_digit) for form, needs_digit in forms)


@cache
def _pin_forms() -> tuple[re.Pattern[str], ...]:
    verbs = r"\s{1,3}(?:is|was|ist|lautet|est|es|é|è|er|är|to|on)" + _STILL
    return (
        re.compile(
            rf"{_PIN}[\"'*]{{0,3}}{_FOR}(?:{_SEPARATOR}|{verbs}|\s{{1,3}})[\"'*]{{0,3}}{_DIGITS}",
            re.IGNORECASE,
        ),
        re.compile(
            rf"\b(?:cvv2?|cvc2?)\b(?:{_SEPARATOR}|{verbs}|\s{{1,3}})(?P<secret>\d{{3,4}})(?!\w)",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?:暗証番号|PIN码|密码|비밀번호)\s?(?:是|は|:|：|은|는)\s?{_DIGITS}", re.IGNORECASE
        ),
    )


@cache
def _mine() -> re.Pattern[str]:
    return re.compile(
        r"\s{1,3}is\s{1,3}(?:my|the|our)(?:\s{1,3}\w{1,20}){0,2}?\s{1,3}"
        r"(?:password|passcode|passphrase|pin)\b(?!\s{1,3}\w{1,20}ed\b)",
        re.IGNORECASE,
    )


def find_spoken(text: str) -> Iterator[tuple[str, int, int]]:
    """The kind ("password" or "pin"), start and end of each one in `text`."""
    for pattern, needs_digit in _password_forms():
        for match in pattern.finditer(text):
            start, end = match.span("secret")
            if _is_secret(text[start:end], text[end : end + 60], needs_digit=needs_digit):
                yield "password", start, end
    for pattern in _pin_forms():
        for match in pattern.finditer(text):
            if not UNITS.match(text[match.end("secret") :][:20].lstrip()):
                yield "pin", *match.span("secret")
    for match in _mine().finditer(text):
        before = text[max(0, match.start() - 64) : match.start()].rsplit(maxsplit=1)
        word = before[-1] if before else ""
        if any(char.isdigit() for char in word) and len(word.strip("\"'`")) >= 4:
            yield "password", match.start() - len(word), match.start()


_CODE = re.compile(
    r"[=/&|!].*|.*[(\[{].*|\$.*|%.*|[*•x.…_-]+|https?:.*|n/a|tbd|redacted.*"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|(?:your|my|the|some|new|old|user|db)[-_]\w+",
    re.IGNORECASE,
)


def _is_secret(value: str, rest: str, *, needs_digit: bool) -> bool:
    is_quoted = value[0] in "\"'`“「"
    bare = value.strip("\"'`“”「」") if is_quoted else value.rstrip(".,!?:;)*")
    if len(bare) < 3 or _CODE.fullmatch(bare) or (needs_digit and not re.search(r"\d", bare)):
        return False
    word = re.sub(r"['’]\w{1,2}$", "", bare).casefold()
    if word in TALK:
        # "correct horse battery staple" is no talk.
        return (
            word == "correct"
            and bool(re.match(r"\s+[a-z]", rest))
            and not FUNCTION_WORDS.match(rest)
        )
    if is_quoted and " " in bare:
        return bare.split()[0].casefold() not in TALK
    length = re.fullmatch(r"\d{1,3}(?:[-–+]\d{0,3})?-?([a-z]*)", word)
    if length and (UNITS.match(length[1]) or UNITS.match(rest.lstrip(" -"))):
        return False
    parts = word.split("-")
    if all(part.isalpha() for part in parts):
        if len(parts) == 2 and (parts[1].endswith("ed") or any(part in TALK for part in parts)):
            return False
        return len(parts) > 1 or is_quoted or not (word.endswith("ed") and len(word) > 4)
    return True
