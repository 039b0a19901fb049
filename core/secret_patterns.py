"""The forms of secrets that can be told by their shape: tokens, keys, card numbers.

It must not know what is done with them. Passwords in sentences stand in `core.passwords`.

Every pattern is anchored at a literal or a bounded start and none can backtrack over more than a
few hundred characters, so that the time grows with the length of the text alone.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Rule:
    """`hints` are in lower case; the pattern is only tried when one of them is in the text.

    Where the pattern has a group `secret`, only that part is the secret. `check` sees it and may
    say no.
    """

    kind: str
    hints: tuple[str, ...]
    source: str
    check: Callable[[str], bool] | None = None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each secret of this kind."""
        pattern = _compiled(self.source)
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            if self.check is None or self.check(match[group]):
                yield match.span(group)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.ASCII)


@cache
def rules() -> tuple[Rule, ...]:
    """All rules. A pattern is compiled when its hint first turns up, since few ever do.

    Source: the token formats that the issuers document, and their public secret-scanning lists.
    """
    return tuple(
        Rule(kind, tuple(hints.split("¦")), source, check)
        for kind, hints, source, check in (
            ("anthropic key", "sk-ant-", r"(?<![A-Za-z0-9])sk-ant-[\w-]{16,}", None),
            (
                "api key",
                "sk-",
                r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|or-v1|lf|None)-[\w-]{16,}"
                r"|[A-Za-z0-9]{20,})",
                None,
            ),
            (
                "slack token",
                "xox¦xapp-¦xwfp-",
                r"(?<![A-Za-z0-9])(?:xox[abcdeoprs][.-][\w.-]{10,}|xapp-\d-[\w-]{10,}|xwfp-[\w-]{10,})",
                None,
            ),
            (
                "webhook",
                "hooks.slack.com/¦/api/webhooks/¦webhook.office.com/",
                r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}"
                r"|discord(?:app)?\.com/api/webhooks/\d{5,25}/[\w-]{20,}"
                r"|webhook\.office\.com/webhookb2/[\w@/-]{40,}",
                None,
            ),
            (
                "github token",
                "ghp_¦gho_¦ghu_¦ghs_¦ghr_¦github_pat_",
                r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
                None,
            ),
            (
                "gitlab token",
                "gl",
                r"(?<![A-Za-z0-9])gl(?:pat|ptt|dt|rt|cbt|agent|ft|imt|oas|soat)-[\w.-]{20,}",
                None,
            ),
            ("google key", "aiza", r"(?<![A-Za-z0-9])AIza[\w-]{30,}", None),
            (
                "google token",
                "ya29.¦gocspx-¦1//0",
                r"(?<![A-Za-z0-9])(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,})",
                None,
            ),
            (
                "aws key",
                "akia¦asia¦abia¦acca",
                r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
                None,
            ),
            (
                "aws key",
                "aws",
                r"(?i:aws)[^\n]{0,40}?(?<=[\s=:\"'])(?P<secret>(?=[a-z0-9/+]{0,39}[A-Z])"
                r"(?=[A-Z0-9/+]{0,39}[a-z])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
                _has_letters_and_digits,
            ),
            (
                "azure key",
                "accountkey=¦sharedaccesskey=¦sig=",
                r"(?i:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{30,}={0,2}|[?&]sig=[\w%+/-]{30,}",
                None,
            ),
            (
                "stripe key",
                "_live_¦_test_¦whsec_",
                r"(?<![A-Za-z0-9])(?:[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})",
                None,
            ),
            ("twilio key", "sk", r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])", None),
            ("sendgrid key", "sg.", r"(?<![A-Za-z0-9])SG\.[\w-]{16,}\.[\w-]{16,}", None),
            (
                "mail key",
                "key-¦-us",
                r"(?<![\w-])key-[0-9a-f]{32}(?!\w)|(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)",
                None,
            ),
            (
                "telegram token",
                ":aa",
                r"(?<!\w)\d{8,10}:AA[\w-]{30,}",
                None,
            ),
            (
                "discord token",
                ".",
                r"(?<![\w-])[MNO][A-Za-z\d][\w-]{21,26}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])",
                None,
            ),
            (
                "access token",
                "npm_¦pypi-¦hf_¦_v1_¦shp¦lin_api_¦ntn_¦secret_¦atatt3¦atctt3¦dapi¦pmak-¦hvs.¦figd_"
                "¦glc_¦glsa_¦sntrys_¦sntryu_¦nrak-¦gsk_¦xai-¦r8_¦pplx-¦tvly-¦sbp_¦sb_secret_"
                "¦pscale_¦dckr_pat_¦dp.pt.¦age-secret-key-¦eaa¦sq0¦nvapi-¦rubygems_¦key_live_",
                r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{30,}|pypi-[\w-]{50,}|hf_[A-Za-z0-9]{30,}"
                r"|do[opr]_v1_[0-9a-f]{40,}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"
                r"|lin_api_[A-Za-z0-9]{30,}|(?:ntn|secret)_[A-Za-z0-9]{40,}|AT[AC]TT3[\w=-]{40,}"
                r"|dapi[0-9a-f]{32}|PMAK-[0-9a-f-]{40,}|hvs\.[\w-]{20,}|figd_[\w-]{30,}"
                r"|gl(?:c|sa)_[\w+/=]{30,}|sntry[su]_[\w+/=]{30,}|NRAK-[A-Z0-9]{20,}"
                r"|gsk_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}"
                r"|pplx-[A-Za-z0-9]{30,}|tvly-[\w-]{20,}|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}"
                r"|pscale_(?:tkn|pw)_[\w.-]{30,}|dckr_pat_[\w-]{20,}|dp\.pt\.[A-Za-z0-9]{40,}"
                r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}|EAA[A-Za-z0-9]{60,}|sq0(?:atp|csp)-[\w-]{20,}"
                r"|nvapi-[\w-]{40,}|rubygems_[0-9a-f]{40,}|key_live_[A-Za-z0-9]{16,})",
                None,
            ),
            (
                "signed token",
                "eyj",
                r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
                None,
            ),
            (
                "private key",
                "private key",
                r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr]){0,8}"
                r"(?:[A-Za-z-]{1,30}: [^\n\\]{0,100}(?:\s|\\[nr]){1,8}){0,4}[A-Za-z0-9+/=]{16,}"
                r"(?:[^-]|-(?!----))*(?:-----END [A-Z0-9 ]{0,40}-----)?",
                None,
            ),
            (
                "password in a url",
                "://",
                r"(?<![A-Za-z])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,80}:"
                r"(?P<secret>[^\s/\"'<>]{1,200})@(?=[\w.\[-])",
                _is_no_placeholder,
            ),
            (
                "authorization",
                "bearer¦basic¦authorization¦token ",
                r"(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|apikey)\s{1,3}"
                r"|\bbearer\s{1,3})(?P<secret>[\w+/=.~-]{8,})",
                _is_mixed,
            ),
            (
                "password",
                "curl ",
                r"\bcurl(?=\s)[^\n]{0,200}?\s(?:-u|--user)\s{1,3}[\"']?[\w.@+-]{0,60}:(?P<secret>[^\s\"']{1,100})",
                _is_no_placeholder,
            ),
            (
                "password",
                "redis-cli¦valkey-cli¦sshpass¦mysql",
                r"\b(?:(?:redis|valkey)-cli(?=\s)[^\n]{0,200}?\s-a\s{1,3}|sshpass\s{1,3}-p\s{0,3}"
                r"|mysql(?:dump|admin)?(?=\s)[^\n]{0,200}?\s(?:-p|--password=))[\"']?"
                r"(?P<secret>[^\s\"']{3,100})",
                _is_no_placeholder,
            ),
            (
                "api key",
                "key¦secret¦token¦credential",
                r"(?i:(?:api|access|secret|private|auth|account|encryption|signing|master|license"
                r"|shared|storage|subscription)[ _-]?key|secret|token|credentials?)[\"']?"
                r"\s{0,3}(?:[:=]|:=|=>|\bis\b)\s{0,3}[\"'`]?"
                r"(?P<secret>[\w+/=.~!@#$%^&*-]{10,}+)(?![(\[])",
                _looks_random,
            ),
            (
                "card number",
                "",
                r"(?<![\w.-])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5}"
                r"|3[0689]\d{2}([ -]?)\d{6}\3\d{4}|62\d{17})(?![\w-]|\.\d)",
                _is_card,
            ),
            (
                "social security number",
                "ssn¦social security",
                r"(?i:\bssn\b|\bsocial security)[^\n\d]{0,30}"
                r"(?P<secret>\d{3}[- ]?\d{2}[- ]?\d{4})(?!\d)",
                None,
            ),
            (
                "seed phrase",
                "phrase¦mnemonic",
                r"(?i:(?:seed|recovery|secret|mnemonic|backup)[ -](?:phrase|words)|\bmnemonic)"
                r"(?: is| are)?\s{0,3}[:=]?\s{0,3}[\"']?"
                r"(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
                None,
            ),
        )
    )


_PLACEHOLDERS = re.compile(
    r"(?i)[*•x.…]+|<.*|\$.*|%.*|\{.*|\[.*|(?:your|my|the|some|example)[-_ ]?[\w-]*|pass|pwd"
    r"|changeme|change-me|placeholder|redacted.*|null|none|true|false|undefined"
)


def _is_no_placeholder(text: str) -> bool:
    return _PLACEHOLDERS.fullmatch(text) is None


def _has_letters_and_digits(text: str) -> bool:
    return re.search(r"[A-Za-z]", text) is not None and re.search(r"\d", text) is not None


def _is_mixed(text: str) -> bool:
    """Whether a word is none: it holds a digit, or a capital after a small letter."""
    return re.search(r"\d|[a-z][A-Z]", text) is not None


def _looks_random(text: str) -> bool:
    """Whether an assigned value is a value and not code: letters and digits, no dotted name."""
    if not _is_no_placeholder(text):
        return False
    if not _has_letters_and_digits(text):
        is_camel_case = re.fullmatch(r"[a-z]*(?:[A-Z][a-z]+)*", text) is not None
        return len(text) >= 20 and text.isalpha() and _is_mixed(text) and not is_camel_case
    is_name = re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", text) is not None
    # Words joined by hyphens or underscores with a number at the end are names, such as a slug.
    is_slug = re.fullmatch(r"(?:[A-Za-z]+[-_.])*[A-Za-z]*[-_.]?v?\d{1,4}", text) is not None
    is_date = re.match(r"\d{4}-\d{2}-\d{2}", text) is not None
    return not is_name and not is_slug and not is_date


def _is_card(text: str) -> bool:
    """Whether the digits are those of a payment card: a range in use, and Luhn's check digit.

    Source: ISO/IEC 7812 and the ranges that the networks publish.
    """
    digits = [int(char) for char in text if char.isdigit()]
    number = "".join(map(str, digits))
    two, three, four = int(number[:2]), int(number[:3]), int(number[:4])
    if len(digits) == 16:
        is_range = (
            number[0] == "4"
            or 51 <= two <= 55
            or 2221 <= four <= 2720
            or four == 6011
            or 644 <= three <= 659
            or 3528 <= four <= 3589
            or two in (50, 56, 57, 58, 62, 63, 67)
        )
    else:
        is_range = number[0] == "3" or two == 62
    doubled = [d * 2 - 9 * (d > 4) if i % 2 else d for i, d in enumerate(reversed(digits))]
    return is_range and sum(doubled) % 10 == 0 and len(set(digits)) > 1
