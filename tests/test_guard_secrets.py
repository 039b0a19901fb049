"""What is a secret and what is not, and how secrets are blotted out."""

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.guard import find_secrets, redact, redact_json

JOINT = "␟"
"""Stands inside token-like text of the set, so that scanners of a host leave the file alone."""


@dataclass(frozen=True, slots=True)
class Line:
    """One labelled text; `kind` is that of the secret, or the sort of harmless text."""

    text: str
    secret: bool
    kind: str


def _lines() -> list[Line]:
    file = Path(__file__).parent / "data" / "secrets.jsonl"
    rows = (json.loads(row) for row in file.read_text(encoding="utf-8").splitlines())
    return [Line(row["text"].replace(JOINT, ""), row["secret"], row["kind"]) for row in rows]


LINES = _lines()
SECRETS = [line for line in LINES if line.secret]
HARMLESS = [line for line in LINES if not line.secret]


def test_the_labelled_set_is_large_and_balanced() -> None:
    assert len(LINES) >= 140
    assert 0.4 <= len(SECRETS) / len(LINES) <= 0.6
    assert len({line.kind for line in SECRETS}) >= 20
    assert len({line.text for line in LINES}) == len(LINES)


@pytest.mark.parametrize("line", SECRETS, ids=lambda line: f"{line.kind}-{line.text[:12]}")
def test_a_secret_is_found_and_does_not_survive(line: Line) -> None:
    found = find_secrets(line.text)
    assert [secret.kind for secret in found] == [line.kind]
    redacted = redact(line.text)
    assert f"[redacted: {line.kind}]" in redacted
    secret = line.text[found[0].start : found[0].end]
    assert redacted.count(secret) < line.text.count(secret)


@pytest.mark.parametrize("line", HARMLESS, ids=lambda line: f"{line.kind}-{line.text[:12]}")
def test_harmless_text_is_left_alone(line: Line) -> None:
    assert find_secrets(line.text) == []
    assert redact(line.text) == line.text


def test_a_secret_is_found_among_other_text() -> None:
    for line in SECRETS:
        text = f"Hello,\nplease look at this:\n{line.text}\n\nThanks, see you at 10.30 tomorrow."
        redacted = redact(text)
        assert redacted.startswith("Hello,\nplease look at this:\n")
        assert "[redacted: " in redacted


def test_a_password_in_an_address_leaves_the_address() -> None:
    error = "could not connect to redis://app:s3cr3tpw@cache.internal:6379/0"
    assert redact(error) == (
        "could not connect to redis://app:[redacted: password in a url]@cache.internal:6379/0"
    )


def test_secrets_are_taken_out_whole() -> None:
    assert (
        redact("postgres://u:p@ss@host/db") == "postgres://u:[redacted: password in a url]@host/db"
    )
    for name in ("password is ", "api_key=", "password "):
        assert redact(name + "a1b2" * 45).endswith("]")
    text = "password is postgres://app:tiger4711@db/shop now"
    assert redact(text) == "password is [redacted: password] now"


@pytest.mark.parametrize("length", [13, 14, 15, 16, 17, 18, 19])
def test_random_long_numbers_are_seldom_taken_for_cards(length: int) -> None:
    numbers = random.Random(length)
    flagged = sum(
        bool(find_secrets("id " + "".join(numbers.choice("0123456789") for _ in range(length))))
        for _ in range(1_000)
    )
    assert flagged <= 60


FRAGMENTS = (
    *(
        "password",
        "is",
        "pin",
        ":",
        "=",
        "4821",
        "hunter2",
        "[redacted: ",
        "]",
        '"',
        "'",
        "sk-ant-",
    ),
    *("ghp_", "AKIA", "key", "token", "bearer", "://", "@", "eyJ", ".", "-", "my", "was", "to"),
    "-----BEGIN PRIVATE KEY-----",
)


# Sentences made of the parts of secrets, so that redacting meets half-forms and neighbours.
PIECES = st.lists(
    st.one_of(
        st.sampled_from([line.text for line in LINES]),
        st.sampled_from(FRAGMENTS),
        st.text(max_size=12),
    ),
    max_size=8,
)


def test_a_secret_that_another_one_hides_is_taken_out_too() -> None:
    assert redact("SSN 078-05-1120OTP 991204") == (
        "SSN [redacted: social security number]OTP [redacted: pin]"
    )


@given(PIECES, st.sampled_from(["", " ", "\n"]))
@settings(max_examples=400, deadline=None)
def test_redacting_twice_is_redacting_once(pieces: list[str], glue: str) -> None:
    once = redact(glue.join(pieces))
    assert redact(once) == once
    assert find_secrets(once) == []


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_spans_are_ordered_and_inside_the_text(text: str) -> None:
    end = 0
    for secret in find_secrets(text):
        assert end <= secret.start < secret.end <= len(text)
        end = secret.end


HOSTILE = {
    "one word": "a",
    "digits": "1",
    "card halves": "4111 ",
    "spaces": " ",
    "line ends": "\n",
    "hyphens": "a-",
    "addresses": "a://b:",
    "schemes": "a+b.c-",
    "names": "password is ",
    "names with a purpose": "password for a b c d ",
    "pins": "pin for x ",
    "curl": "curl a -u ",
    "keys that never end": "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
    "key headers": "-----BEGIN PRIVATE KEY-----\nA: b\n",
    "assignments": "api_key=aaaaaaaaaaaa ",
    "seed words": "seed phrase abc ",
    "open quotes": 'password: "',
    "aws": "aws aws ",
    "half tokens": "eyJaaaaaaaa.eyJ",
    "bearers": "authorization: bearer ",
    "markers": "[redacted: password] is ",
    "everything": "password pin sk- xox eyj akia bearer :// curl key ssn aws phrase is my code ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_redacting_hostile_text_takes_linear_time(piece: str) -> None:
    find_secrets("compiles the patterns")
    text = piece * (200_000 // len(piece))
    before = time.process_time()
    find_secrets(text)
    assert time.process_time() - before < 1.0


def test_json_is_redacted_to_its_depth() -> None:
    value = {
        "query": "how to reset a password",
        "limit": 3,
        "ok": True,
        "none": None,
        "list": ["my PIN is 4821", ("password: hunter2",)],
        "password": "sunflower",
        "db_password": "grape-fruit",
        "pin": 4821,
        "input_tokens": 40500,
        "hunter2 is my password": 1,
    }
    assert redact_json(value) == {
        "query": "how to reset a password",
        "limit": 3,
        "ok": True,
        "none": None,
        "list": ["my PIN is [redacted: pin]", ["password: [redacted: password]"]],
        "password": "[redacted: password]",
        "db_password": "[redacted: password]",
        "pin": "[redacted: pin]",
        "input_tokens": 40500,
        "[redacted: password] is my password": 1,
    }


def test_key_and_value_of_a_fact_are_judged_together() -> None:
    arguments = {"key": "wifi_password", "value": "sunflower"}
    assert redact_json(arguments)["value"] == "[redacted: password]"
    assert redact_json({"key": "flower", "value": "sunflower"})["value"] == "sunflower"


def test_a_secret_in_a_deep_value_does_not_get_through() -> None:
    value: Any = "my PIN is 4821"
    for _ in range(5_000):
        value = {"deeper": [value]}
    redacted = redact_json(value)
    assert "4821" not in json.dumps(redacted)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=150, deadline=None)
def test_redacted_json_keeps_its_shape_and_is_stable(value: Any) -> None:
    redacted = redact_json(value)
    json.dumps(redacted)
    assert redact_json(redacted) == redacted
    assert isinstance(redacted, Mapping) == isinstance(value, Mapping)
    assert isinstance(redacted, list) == isinstance(value, list)
