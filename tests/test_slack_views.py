"""What people see of their memory, within Slack's limits and never nicer than the truth."""

from bots.slack.memory import Counts, forgotten_text, home_view
from core.types import Session
from tests.slack_rules import check_view


def test_incomplete_forgetting_is_not_called_done():
    text = forgotten_text(Counts(2, 1, 0, is_complete=False), "everywhere")
    assert "could not forget everything" in text
    assert "2 facts and 1 question with its answer" in text
    assert forgotten_text(Counts(0, 0, 0), "channel").endswith(": nothing.")


def test_home_with_very_many_facts_stays_within_slacks_limits():
    facts = {f"key {n}": "v" * 200 for n in range(20)}
    known = [(Session("slack", "T1", f"C{n}", "U1"), facts) for n in range(30)]
    view = home_view(known, Counts(600, 0, 0), "Forgotten in this whole workspace: nothing.")
    assert 90 < len(view["blocks"]) <= 100
    check_view(view)


def test_home_without_facts_still_says_what_else_is_kept():
    shown = str(home_view([], Counts(0, 2, 0)))
    assert "Nothing so far." in shown
    assert "In this whole workspace I keep 2 questions with their answers of yours." in shown
