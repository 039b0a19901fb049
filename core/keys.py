"""Every key in Redis, one builder each: its type, its lifetime and who writes it.

It must not know what the values mean, nor talk to Redis.

The braces are a hash tag: `{platform/workspace/partition}`. All that belongs to one channel shares
a tag, so a script, which is given the tag alone and builds the rest with `LUA_KEYS`, never leaves
its slot of a cluster. Ids are escaped, so no id can end a tag, a part of a key or a pattern.
"""

from collections.abc import Mapping

from core.types import PARTITIONS, Conversation, Session, escape_id, partition_tag

GROUP = "workers"
"""The consumer group of every ready stream."""

LATER = "-later"
"""The consumer that holds entries whose retry is not due yet. No worker may have this name."""

_PREFIXES: Mapping[str, str] = {
    "seen": "seen:",
    "inbox": "in:",
    "run": "run:",
    "alias": "alias:",
    "thread": "thread:",
    "hist": "hist:",
    "notes": "notes:",
    "mem": "mem:",
    "epoch": "epoch:",
    "rec": "rec:",
    "undo": "undo:",
    "mine": "mine:",
    "once": "once:",
    "gaps": "gaps",
    "act": "act",
    "ready": "ready",
    "dead": "dead",
    "workers": "workers",
}

LUA_KEYS = "\n".join(
    [
        "local T = KEYS[1] .. ':'",
        f"local GROUP, LATER = '{GROUP}', '{LATER}'",
        "local K = {",
        *(f"  {name} = T .. '{prefix}'," for name, prefix in _PREFIXES.items()),
        "}",
        "",
    ]
)
"""The first lines of every script: `K.hist .. conversation` is what `hist()` builds here."""


def root(tag: str) -> str:
    """The hash tag with its braces: the one key that a script is given. Never written itself."""
    return f"{{{tag}}}"


def partitions(platform: str, workspace: str) -> list[str]:
    """The tags of all partitions of a workspace, in order."""
    return [partition_tag(platform, workspace, number) for number in range(PARTITIONS)]


def _key(tag: str, name: str, rest: str = "") -> str:
    return f"{{{tag}}}:{_PREFIXES[name]}{rest}"


# The inbox. No lifetime on what is queued: an eviction policy may take only keys that have one. --


def seen(conversation: Conversation, message_id: str) -> str:
    """String, the conversation's key: this message was accepted. TTL: 1 hour. Writer: accept."""
    return _key(conversation.tag, "seen", escape_id(message_id))


def inbox(conversation: Conversation) -> str:
    """List of queued messages, oldest first; the head is the one being answered.

    An item is two lines of JSON: [accepted at in ms, message id, user, session key], and the
    message. TTL: none. Writers: accept (right), delivered and fail (left), retry of a dead letter
    (right), withdraw.
    """
    return _key(conversation.tag, "inbox", conversation.key)


def act(tag: str) -> str:
    """Hash of conversation key → entry id on the ready stream: who is waiting or being answered.

    TTL: none. Writers: accept, delivered, fail, leave, repair.
    """
    return _key(tag, "act")


def ready(tag: str) -> str:
    """Stream, group `workers`: one entry {c: conversation key} for each field of `act`.

    TTL: none. Writers: accept, delivered, fail, leave, repair; entries are deleted when done.
    """
    return _key(tag, "ready")


def run(conversation: Conversation) -> str:
    """Hash: the run of the head message.

    Fields: message_id, run_id, lease (the token of the worker that owns it), user, session,
    phase (running, answered), attempts, elapsed_ms, checkpoint, ref, final (an answer that may be
    delivered but not kept), epoch and thread_epoch (read when the run began), not_before (ms, while
    a retry waits), cancel. TTL: none; deleted with the head. Writers: the worker's scripts, cancel
    (its flag), forget (drops checkpoint and final).
    """
    return _key(conversation.tag, "run", conversation.key)


def dead(tag: str) -> str:
    """Hash of run id → JSON {id, at (ms), reason, attempts, conversation, item}: dead letters.

    TTL: none on the key; letters older than the run records are pruned. Writers: fail, retry,
    repair, forget.
    """
    return _key(tag, "dead")


def gaps(tag: str) -> str:
    """Sorted set of run ids → Unix ms: questions that found nothing good, or a thumbs down.

    It holds no words; those are in the run's record, and go with it. TTL: RUN_TTL_DAYS. Writers:
    answered, feedback.
    """
    return _key(tag, "gaps")


def workers(platform: str, workspace: str) -> str:
    """Sorted set of consumer → last sign of life (ms, the server's clock).

    The one key outside the partitions: a process reads it to learn that another died, so that idle
    processes need not sweep every partition. TTL: none. Writer: each worker process.
    """
    return _key(f"{escape_id(platform)}/{escape_id(workspace)}", "workers")


def workplaces() -> str:
    """Set of "platform|workspace", escaped: all that a process was ever started for.

    The one key that belongs to no workspace, so that an operator sees them all without a scan.
    TTL: none. Writer: each worker process, at its start.
    """
    return "{footnote}:workplaces"


# Conversations ------------------------------------------------------------------------------------


def alias(conversation: Conversation) -> str:
    """String: the key of the conversation that this id belongs to.

    `conversation.thread` is the id of a message that the bot posted, or of a thread made from one.
    TTL: HISTORY_TTL_DAYS. Writers: save_ref, answered, delivered.
    """
    return _key(conversation.tag, "alias", conversation.key)


def thread(conversation: Conversation) -> str:
    """Hash {engaged, muted, epoch}; a raised epoch voids the history of runs under way.

    TTL: HISTORY_TTL_DAYS, sliding. Writers: accept, mute, answered, forget.
    """
    return _key(conversation.tag, "thread", conversation.key)


def hist(conversation: Conversation) -> str:
    """List of turns, oldest first; an item is a whole pair of question and answer, as JSON.

    TTL: HISTORY_TTL_DAYS, sliding; older pairs are dropped when one is added. Writers: answered,
    forget.
    """
    return _key(conversation.tag, "hist", conversation.key)


def notes(conversation: Conversation) -> str:
    """List of [label, text] as JSON, oldest first: what other bots said here.

    TTL: HISTORY_TTL_DAYS. Writer: note_context.
    """
    return _key(conversation.tag, "notes", conversation.key)


# Memory -------------------------------------------------------------------------------------------


def mem(session: Session) -> str:
    """Hash of fact key → JSON {value, norm, created_at, message_id, run_id, op}.

    TTL: MEMORY_TTL_DAYS, sliding. Writers: save, undo, delete, forget.
    """
    return _key(session.tag, "mem", session.key)


def epoch(session: Session) -> str:
    """Integer, raised by forget: a run that began at a lower one saves nothing.

    TTL: RUN_TTL_DAYS, longer than any run lasts. Writer: forget.
    """
    return _key(session.tag, "epoch", session.key)


def rec(tag: str, run_id: str) -> str:
    """Hash {session, conversation, run (JSON), feedback}: the record of a run, for its asker.

    TTL: RUN_TTL_DAYS. Writers: answered, feedback, forget.
    """
    return _key(tag, "rec", escape_id(run_id))


def undo(session: Session, run_id: str, fact: str) -> str:
    """String, JSON {session, value, old}: what an Undo of this run's save restores.

    `old` is the whole earlier value of the hash field, "" when there was none. TTL: RUN_TTL_DAYS.
    Writers: save, undo, delete, forget.
    """
    return _key(session.tag, "undo", f"{escape_id(run_id)}/{escape_id(fact)}")


def mine(tag: str, user: str) -> str:
    """Sorted set of the places in this partition that hold the user's words, so forget never scans.

    A member is `<escaped channel>|<kind>|<rest of the key>`, kind being mem, hist, run, rec, undo
    or dead; its score is when the place is gone for certain (Unix seconds). TTL: as its last place.
    Writers: every script that writes such a place; forget.
    """
    return _key(tag, "mine", escape_id(user))


def once(tag: str, token: str) -> str:
    """String: the result of a call that must not count twice when its reply was lost.

    TTL: 60 s. Writers: undo, delete, forget.
    """
    return _key(tag, "once", token)
