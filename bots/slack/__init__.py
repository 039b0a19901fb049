"""Footnote in Slack: Socket Mode or HTTP, streamed answers in threads, private memory commands."""
