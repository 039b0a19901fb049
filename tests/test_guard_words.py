"""Whether a value is what the user said."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.guard import supported_by

SAID = [
    ("I live in Pune", "lives in Pune"),
    ("I live in Pune", "User lives in Pune"),
    ("I've just moved from Pune to Delhi", "moved to Delhi"),
    ("My name's Ana.", "Ana"),
    ("hi!! i'm a NURSE at st. mary's", "nurse at St. Mary's"),
    ("My salary is 50,000 €", "salary 50000 €"),
    ("I write C++ and a bit of Python 3.11", "Python 3.11, C++"),
    ("I do not like tea", "does not like tea"),
    ("I don't eat meat", "Do not eat meat"),
    ("I have no children", "no children"),
    ("Don't forget that I like tea", "likes tea"),
    ("I don't like tea but I like coffee", "likes coffee"),
    ("I do not live in Pune anymore I moved to Delhi", "moved to Delhi"),
    ("I never work on Fridays", "never works on Fridays"),
    ("Ich wohne in Köln und bin Lehrerin", "ist Lehrerin, wohne in Köln"),
    ("Ich mag Tee nicht", "mag Tee nicht"),
    ("J'habite à Lyon", "habite à Lyon"),
    ("Trabajo en una panadería", "trabaja en panadería"),
    ("Я живу в Москве", "живу в Москве"),
    ("我住在北京,喜欢茶", "住在北京"),
    ("我不喜欢茶", "不喜欢茶"),
    ("私は東京の銀行で働いています", "東京の銀行"),
    ("저는 서울에 살아요", "서울"),
    ("我有一只猫", "猫"),
    ("ฉันชอบชา", "ชอบชา"),
    ("मुझे चाय पसंद है", "चाय पसंद"),
    ("می‌خواهم وکیل شوم", "می‌خواهم وکیل شوم"),
    ("Ｉ ｌｉｋｅ ｔｅａ", "likes tea"),
]
NOT_SAID = [
    ("I live in Pune", "lives in Oslo"),
    ("I do not like tea", "likes tea"),
    ("I don't think I like tea", "likes tea"),
    ("Tea is not for me", "tea"),
    ("I like tea", "does not like tea"),
    ("I like tea", "tea, not"),
    ("I don't like tea but I like coffee", "does not like coffee"),
    ("I never work on Fridays", "works on Fridays"),
    ("I have no children", "children"),
    ("Ich mag Tee nicht", "mag Tee"),
    ("Je n'aime pas le thé", "aime le thé"),
    ("Я не люблю чай", "люблю чай"),
    ("मुझे चाय पसंद नहीं है", "चाय पसंद"),
    ("我不喜欢茶", "喜欢茶"),
    ("私はお茶が好きではない", "お茶が好き"),
    ("ฉันไม่ชอบชา", "ชอบชา"),
    ("I work 3 hours a day", "works 30 hours a day"),
    ("5 years and 3 months", "5.3 years"),
    ("I write C++", "C#"),
    ("I live in Pune", "the"),
    ("I live in Pune", "Pune 🏴"),
    ("I live in Pune", "live in Рune"),
    ("I like hard work", "die hard"),
    ('She wrote "I live in Oslo"', "lives in Oslo"),
    ("She wrote “I live in Oslo” to me", "lives in Oslo"),
    ("Sie schrieb „Ich wohne in Oslo“", "wohne in Oslo"),
    ("彼は「大阪に住んでいる」と言った", "大阪に住んでいる"),
    ("> I live in Oslo\nIs that far?", "lives in Oslo"),
    ("&gt; I live in Oslo\nIs that far?", "lives in Oslo"),
    (">>> I live in Oslo\nand work there", "works there, Oslo"),
    ("```\nI live in Oslo\n```\nwhat is it?", "lives in Oslo"),
    ("what is this? ```I live in Oslo", "lives in Oslo"),
    ("~~~\nI live in Oslo\n~~~\nwhat is it?", "lives in Oslo"),
]


@pytest.mark.parametrize(("text", "value"), SAID)
def test_what_the_user_said_is_supported(text: str, value: str) -> None:
    assert supported_by(value, ["hello", text])


@pytest.mark.parametrize(("text", "value"), NOT_SAID)
def test_what_the_user_did_not_say_is_not_supported(text: str, value: str) -> None:
    assert not supported_by(value, ["hello", text])


def test_words_of_two_messages_do_not_add_up() -> None:
    texts = ["I live in Pune", "my brother works in Oslo"]
    assert supported_by("works in Oslo", texts)
    assert not supported_by("lives in Oslo", texts)


def test_zero_width_characters_hide_nothing() -> None:
    assert supported_by("tea", ["I like t\u200bea"])


def test_a_long_message_is_compared_in_time() -> None:
    texts = ["I don't like tea 'and \"so on " * 260] * 20
    before = time.perf_counter()
    assert not supported_by("lives in Oslo", texts)
    assert time.perf_counter() - before < 2


@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=3))
@settings(max_examples=150, deadline=None)
def test_comparing_never_fails(value: str, texts: list[str]) -> None:
    assert isinstance(supported_by(value, texts), bool)
