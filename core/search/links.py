"""Owns the public link of a passage, made from the template in DOCS_BASE_URL.

It must not know whether the link answers.
"""

import re
from pathlib import PurePosixPath
from string import Formatter
from urllib.parse import quote

from core.errors import ConfigError

FIELDS = ("path", "stem", "anchor", "line", "page")


class Links:
    """Links from a template such as "https://help.example.com/{stem}#{anchor}".

    `{path}` is the document's path, `{stem}` the same without its suffix, `{anchor}` the heading
    as GitHub and most site builders name it, `{line}` and `{page}` numbers. A template without a
    field is a folder's address: the path is put after it.

    Raises:
        ConfigError: no http address, or a field that does not exist.
    """

    def __init__(self, template: str | None) -> None:
        self._template = None
        if not template:
            return
        try:
            fields = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
        except ValueError as err:
            raise ConfigError(f"DOCS_BASE_URL is not a template: {err}") from err
        if unknown := sorted(fields - set(FIELDS)):
            known = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise ConfigError(f"DOCS_BASE_URL has unknown fields {unknown}; there are {known}.")
        if not re.match(r"https?://", template):
            raise ConfigError("DOCS_BASE_URL must begin with http:// or https://")
        self._template = template if fields else f"{template.rstrip('/')}/{{path}}"

    def url(self, path: str, heading: str, line: int, page: int | None) -> str | None:
        """The passage's link; None when there is no template."""
        if self._template is None:
            return None
        link = self._template.format(
            path=quote(path),
            stem=quote(str(PurePosixPath(path).with_suffix(""))),
            anchor=quote(anchor(heading.rsplit(" > ", 1)[-1])),
            line=line,
            page=page or "",
        )
        if page and link.lower().endswith(".pdf"):
            link = f"{link}#page={page}"
        return link.rstrip("#")


def anchor(heading: str) -> str:
    """A heading's name in links: "Reset your password!" → "reset-your-password"."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")
