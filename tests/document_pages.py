"""Pages of the documentation as programs: what they show is written, run, and compared with what comes out.

- A block whose first line is `# NAME.SUFFIX` is a file. It is written as it stands, as a reader copies it; without that
  line where it is not a comment.
- `console` holds commands, `$ ...`, and below each what it prints. `...` stands for a part of a line, and alone for
  any lines.
- `python` without a name runs, in one namespace for the page; `sql` runs in DuckDB. Neither shows a result.
- A block below a line `*Not run by a test: REASON.*` is left alone; tests list these.
- One below `*Run by a test with SERVICE.*` is for `tests/integration/test_service_pages.py`, which starts that service.
- `text`, `mermaid` and `proto` are for readers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^(?:\*(?:Not run by a test: (?P<reason>[^\n]*)|Run by a test with (?P<service>[^\n]*))\.\*\n\n)?"
    r"^```(?P<kind>\w+)\n(?P<text>.*?)^```",
    re.M | re.S,
)
FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n(?P<content>.*)", re.S)
COMMENTED = {".yaml", ".py", ".toml"}
READ_ONLY = {"text", "mermaid", "proto"}
ANY = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One block of a page; `name` is that of the file it is, `reason` why no test runs it, `service` what it needs."""

    kind: str
    text: str
    name: str | None = None
    reason: str | None = None
    service: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and the lines that the page shows below it."""

    line: str
    shown: tuple[str, ...]

    def check(self, printed: str) -> None:
        shown = "\n".join(self.shown)
        assert re.fullmatch(shown_pattern(self.shown), printed), f"{self.line}\nprints:\n{printed}\nshown:\n{shown}"


def read_steps(page: Path) -> list[Step]:
    """The blocks of a page, in order, without those for readers only."""
    steps = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, text, notes = match["kind"], match["text"], {name: match[name] for name in ("reason", "service")}
        if kind in READ_ONLY:
            continue
        file = FILE.fullmatch(text)
        if file and kind != "console":
            content = text if Path(file["name"]).suffix in COMMENTED else file["content"]
            steps.append(Step(kind=kind, text=content, name=file["name"], **notes))
        else:
            steps.append(Step(kind=kind, text=text, **notes))
    return steps


def read_commands(text: str) -> Iterator[Command]:
    """The commands of a `console` block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, *shown = part.splitlines()
        yield Command(line, tuple(shown))


def shown_pattern(lines: list[str] | tuple[str, ...]) -> str:
    """A pattern for what is shown; how columns are aligned does not count."""
    parts = []
    for line in lines:
        if line == ANY:
            parts.append(r"(?:.*\n)*")
        else:
            words = [re.escape(word).replace(re.escape(ANY), ".*") for word in line.split()]
            parts.append(r"\s*" + r"\s+".join(words).replace(r"\s+.*", r"\s*.*") + r"\s*\n")
    return "".join(parts)
