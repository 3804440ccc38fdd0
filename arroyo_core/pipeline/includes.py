"""`!include path`: finds the files of one pipeline, and refuses those that include themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.text import decode

INCLUDE = "!include"
#: How often files may be included in all: files that include one another twice would double at each step.
MAX_INCLUDES = 1_000
#: How many files may be open at once, each included by the one before.
MAX_OPEN = 32


@dataclass(slots=True)
class Includes:
    """The files that are being read, outermost first, and the text of every file that was read."""

    texts: dict[str, str] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _count: int = 0

    @property
    def is_nested(self) -> bool:
        """Whether the file being read was included by another."""
        return len(self._open) > 1

    @contextmanager
    def entered(self, file: str, text: str) -> Iterator[None]:
        """While inside, paths are relative to the folder of `file`."""
        self.texts[file] = text
        self._open.append(file)
        try:
            yield
        finally:
            self._open.pop()

    def open(self, path: str, *, at: Location, mistakes: Mistakes) -> tuple[str, str] | None:
        """Name and text of the file that `path` means in the file being read; None after recording a mistake."""
        if not path.strip():
            mistakes.add(f"{INCLUDE} needs the path of a file", at=at)
            return None
        # Not resolved: people should see the way they wrote, from the file they gave.
        file = os.path.normpath(Path(self._open[-1]).parent / path)
        if any(_is_same(file, other) for other in self._open):
            way = " -> ".join([*self._open, file])
            mistakes.add(f"the files include one another: {way}", at=at, value=path)
            return None
        if len(self._open) >= MAX_OPEN:
            mistakes.add(f"files include one another more than {MAX_OPEN} deep", at=at, value=path)
            return None
        self._count += 1
        if self._count > MAX_INCLUDES:
            mistakes.add(f"a pipeline may include {MAX_INCLUDES} files at most", at=at, value=path)
            return None
        text = self._read(file, path, at, mistakes)
        return None if text is None else (file, text)

    def _read(self, file: str, path: str, at: Location, mistakes: Mistakes) -> str | None:
        if file in self.texts:
            return self.texts[file]
        try:
            return decode(Path(file).read_bytes(), file=file, mistakes=mistakes)
        except OSError as error:
            mistakes.add(
                f"cannot read {file}: {error.strerror or error}", at=at, value=path, suggestion=_near(file, path)
            )
            return None


def _is_same(file: str, other: str) -> bool:
    return Path(file).resolve() == Path(other).resolve()


def _near(file: str, path: str) -> str | None:
    """The path with a file of its folder that has nearly this name."""
    try:
        names = [found.name for found in Path(file).parent.iterdir()]
    except OSError:
        return None
    name = nearest(Path(file).name, names)
    return str(Path(path).parent / name) if name else None
