"""Owns the folders of documents that the search tests build, and how they ask them.

It must not know how an index works inside.
"""

from collections.abc import Mapping
from pathlib import Path

from core.search import DocIndex

RESUME_CENTER: Mapping[str, str] = {
    "resume-summary.md": """---
title: Writing a resume summary
---
# Writing a resume summary

## Where it goes

Put a summary of two or three sentences at the top of your resume, right under your name and
contact details. Recruiters read it first and decide there whether to go on.

## What it says

Name the job you want, your years of experience and one result you are proud of, with a number.
""",
    "ats-parsing.md": """# How an ATS reads your resume

An applicant tracking system turns your file into plain text. Tables, columns and text boxes are
often read in the wrong order, so keep one column and use standard section headings.

## File types

Send a DOCX or a PDF that was exported from a text editor. A scanned PDF holds a picture, and the
parser finds nothing in it.
""",
    "interviews/salary.md": """# Talking about salary

Wait until the employer names a range. If you are asked first, give a range that you looked up
for that role and that city, and say that you are open to the whole package.
""",
    "privacy.txt": """Your data

We delete uploaded resumes after 30 days. You can ask for deletion earlier from the settings page.
""",
}


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """`root` with `files` in it, by relative path."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


async def paths(index: DocIndex, query: str, k: int = 10) -> list[str]:
    """The documents found, best first, with repetitions."""
    return [hit.passage.path for hit in await index.search(query, k)]
