"""The Web API methods of the local Slack, each as a function of its arguments."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.slack_rules import check, check_blocks, check_message, check_tables, check_view

if TYPE_CHECKING:
    from tests.slack_server import SlackServer

Args = dict[str, Any]
Method = Callable[["SlackServer", Args], Args]

_MAX_STREAM_BYTES = 10_600


def auth_test(server: "SlackServer", args: Args) -> Args:
    return {
        "user_id": "UBOT",
        "bot_id": "BBOT",
        "team_id": server.team,
        "team": "Test",
        "user": "bot",
    }


def open_connection(server: "SlackServer", args: Args) -> Args:
    return {"url": f"ws://127.0.0.1:{server.port}/socket"}


def post(server: "SlackServer", args: Args) -> Args:
    check_message(args, is_update=False)
    message = _new(server, args)
    for name in ("text", "blocks", "attachments", "metadata"):
        if args.get(name):
            message[name] = args[name]
    if args.get("markdown_text"):
        message["streamed"] = args["markdown_text"]
    return {"ts": message["ts"], "channel": args["channel"], "message": message}


def update(server: "SlackServer", args: Args) -> Args:
    check_message(args, is_update=True)
    message = _existing(server, args)
    check("streaming_until" not in message, "streaming_state_conflict")
    message.pop("streamed", None)
    for name in ("text", "blocks", "attachments", "metadata"):
        if name in args:
            message[name] = args[name]
    if args.get("markdown_text"):
        message["streamed"] = args["markdown_text"]
        message.pop("blocks", None)
    return {"ts": message["ts"], "channel": args["channel"]}


def delete(server: "SlackServer", args: Args) -> Args:
    server.channels[args["channel"]].remove(_existing(server, args))
    return {"ts": args["ts"]}


def post_ephemeral(server: "SlackServer", args: Args) -> Args:
    check_message(args, is_update=False)
    check(bool(args.get("user")), "user_not_in_channel")
    server.ephemeral.append(args)
    return {"message_ts": server.next_ts()}


def start_stream(server: "SlackServer", args: Args) -> Args:
    check(server.has_streams, "feature_not_enabled")
    check(bool(args.get("thread_ts")), "invalid_arguments", "thread_ts")
    if not args["channel"].startswith("D"):
        check(bool(args.get("recipient_team_id")), "missing_recipient_team_id")
        check(bool(args.get("recipient_user_id")), "missing_recipient_user_id")
        check(args["recipient_user_id"] != "UBOT", "invalid_recipient")
    check("metadata" not in args, "invalid_arguments", "metadata")
    message = _new(server, args)
    message["streamed"] = ""
    message["streaming_until"] = time.monotonic() + server.stream_limit_s
    _stream(message, args)
    return {"ts": message["ts"], "channel": args["channel"]}


def append_stream(server: "SlackServer", args: Args) -> Args:
    message = _streaming(server, args)
    check(bool(args.get("markdown_text") or args.get("chunks")), "no_text")
    _stream(message, args)
    return {"ts": message["ts"]}


def stop_stream(server: "SlackServer", args: Args) -> Args:
    message = _streaming(server, args)
    check_blocks(args.get("blocks") or [], 50)
    _stream(message, args)
    check(bool(message["streamed"] or args.get("blocks")), "no_text")
    del message["streaming_until"]
    for name in ("blocks", "metadata"):
        if args.get(name):
            message[name] = args[name]
    if args.get("session_status"):
        server.sessions[args["channel"], message["thread_ts"]] = args["session_status"]
    return {"ts": message["ts"], "channel": args["channel"], "message": message}


def set_status(server: "SlackServer", args: Args) -> Args:
    check(len(args.get("loading_messages") or []) <= 10, "invalid_arguments")
    server.statuses[args["channel_id"], args["thread_ts"]] = args["status"]
    return {}


def set_session(server: "SlackServer", args: Args) -> Args:
    check(args["status"] in ("active", "processing", "suspended", "closed"), "invalid_arguments")
    server.sessions[args["channel_id"], args["thread_ts"]] = args["status"]
    return {"status": args["status"]}


def replies(server: "SlackServer", args: Args) -> Args:
    oldest = float(args.get("oldest") or 0)
    found = [
        {**{k: v for k, v in m.items() if k not in ("streaming_until", "streamed")}}
        | ({"text": m["streamed"]} if m.get("streamed") else {})
        for m in server.channels[args["channel"]]
        if args["ts"] in (m["ts"], m.get("thread_ts"))
        and (float(m["ts"]) >= oldest or m["ts"] == args["ts"])
    ]
    check(bool(found), "thread_not_found")
    return {"messages": found[: int(args.get("limit") or 100)], "has_more": False}


def user_info(server: "SlackServer", args: Args) -> Args:
    known = {"id": args["user"], "team_id": server.team, "is_bot": False}
    user = server.users.get(args["user"], {"profile": {"display_name": args["user"].lower()}})
    return {"user": known | user}


def show_view(server: "SlackServer", args: Args) -> Args:
    check_view(args["view"])
    server.views.append(args)
    return {"view": {"id": f"V{len(server.views)}"}}


def accept(server: "SlackServer", args: Args) -> Args:
    return {}


METHODS: dict[str, Method] = {
    "auth.test": auth_test,
    "apps.connections.open": open_connection,
    "chat.postMessage": post,
    "chat.update": update,
    "chat.delete": delete,
    "chat.postEphemeral": post_ephemeral,
    "chat.startStream": start_stream,
    "chat.appendStream": append_stream,
    "chat.stopStream": stop_stream,
    "assistant.threads.setStatus": set_status,
    "agents.sessions.setStatus": set_session,
    "conversations.replies": replies,
    "users.info": user_info,
    "views.open": show_view,
    "views.update": show_view,
    "views.publish": show_view,
    "reactions.add": accept,
}


def _new(server: "SlackServer", args: Args) -> Args:
    message: Args = {
        "type": "message",
        "ts": server.next_ts(),
        "user": "UBOT",
        "bot_id": "BBOT",
        "channel": args["channel"],
        "text": "",
    }
    root = args.get("thread_ts")
    # As Slack does: a thread that is gone is forgotten in silence.
    if root and server.find(args["channel"], root):
        message["thread_ts"] = root
        server.statuses[args["channel"], root] = ""
    server.channels[args["channel"]].append(message)
    return message


def _existing(server: "SlackServer", args: Args) -> Args:
    message = server.find(args["channel"], args["ts"])
    check(message is not None, "message_not_found")
    assert message is not None
    check(message.get("bot_id") == "BBOT", "cant_update_message")
    return message


def _streaming(server: "SlackServer", args: Args) -> Args:
    message = _existing(server, args)
    until = message.get("streaming_until", 0)
    if time.monotonic() >= until:
        message.pop("streaming_until", None)
    check("streaming_until" in message, "message_not_in_streaming_state")
    return message


def _stream(message: Args, args: Args) -> None:
    chunks = args.get("chunks") or []
    check(not (chunks and args.get("markdown_text")), "invalid_arguments", "text and chunks")
    text = args.get("markdown_text") or ""
    text += "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
    check(len(text) <= 12_000, "msg_too_long")
    whole = message["streamed"] + text
    check(len(whole.encode()) <= _MAX_STREAM_BYTES, "msg_too_long")
    check_tables([whole])
    message["streamed"] = whole
