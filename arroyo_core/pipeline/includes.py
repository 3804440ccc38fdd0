"""`!include path`: finds the files of one pipeline, and refuses those that include themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_core.api.limits import FILE_BYTES, INCLUDE_DEPTH, INCLUDES, VALUES
from arroyo_core.api.policy import current_policy, is_below, read_limited
from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.text import decode

INCLUDE = "!include"


@dataclass(slots=True)
class Includes:
    """The files that are being read, outermost first, and the text of every file that was read."""

    texts: dict[str, str] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    #: How often files were included in all: files that include one another twice would double at each step.
    _count: int = 0
    #: How many values were read of all files.
    values: int = 0
    max_values: int = field(default_factory=lambda: VALUES.value)

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
        if len(self._open) >= INCLUDE_DEPTH.value:
            mistakes.add(
                f"files include one another more than {INCLUDE_DEPTH.text} deep; {INCLUDE_DEPTH.other}",
                at=at,
                value=path,
            )
            return None
        self._count += 1
        if self._count > INCLUDES.value:
            mistakes.add(f"a pipeline may include {INCLUDES.text} files at most; {INCLUDES.other}", at=at, value=path)
            return None
        text = self._read(file, path, at, mistakes)
        return None if text is None else (file, text)

    def _read(self, file: str, path: str, at: Location, mistakes: Mistakes) -> str | None:
        if file in self.texts:
            return self.texts[file]
        policy = current_policy()
        roots = policy.include_roots(self._open[0])
        if not is_below(file, roots):
            # Neither the file nor its neighbours are looked at: whoever reads the message may not be who may read them.
            refusal = "untrusted mode refuses to include" if policy.is_untrusted else "cannot include"
            mistakes.add(
                f"{refusal} {file}, which is not below {' or '.join(map(str, roots))}: --root DIR allows a folder",
                at=at,
                value=path,
            )
            return None
        try:
            return decode(read_limited(file, FILE_BYTES), file=file, mistakes=mistakes)
        except (OSError, ValueError) as error:
            mistakes.add(
                f"cannot read {file}: {getattr(error, 'strerror', None) or error}",
                at=at,
                value=path,
                suggestion=_near(file, path),
            )
            return None


def _is_same(file: str, other: str) -> bool:
    try:
        return Path(file).resolve() == Path(other).resolve()
    except (OSError, RuntimeError, ValueError):
        # Not the name of any file; whoever opens it says why.
        return False


def _near(file: str, path: str) -> str | None:
    """The path with a file of its folder that has nearly this name."""
    try:
        names = [found.name for found in Path(file).parent.iterdir()]
    except OSError:
        return None
    name = nearest(Path(file).name, names)
    return str(Path(path).parent / name) if name else None
