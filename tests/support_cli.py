"""`footnote` as a process, with a data folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOOTNOTE = Path(sys.executable).with_name("footnote")
QUESTION = "What should I put at the top of my resume?"


class Cli:
    """Runs `footnote` with a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DATA_DIR": str(folder / "data"),
            "TERM": "dumb",
        }

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [FOOTNOTE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environ | environ,
        )

    def __call__(
        self, *arguments: str, stdin: str = "", code: int = 0, **environ: str
    ) -> tuple[str, str]:
        """(stdout, stderr); the exit code must be `code` and nothing may look like a crash."""
        process = self.start(*arguments, **environ)
        out, err = process.communicate(stdin, timeout=60)
        assert process.returncode == code, (out, err)
        assert "Traceback" not in out + err
        return out, err

    def ask(self, question: str, *options: str, code: int = 0, **environ: str) -> dict[str, Any]:
        """The one object that `chat --json` prints."""
        out, _ = self("chat", "--json", question, *options, code=code, **environ)
        return json.loads(out)
