"""The folders of sinks that a listing has files of, and what records of compaction there say of these files.

A source may read a sink's folder, one partition in it, or a folder above several sinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from arroyo_core.api.policy import current_policy, is_below
from arroyo_filesystem.compacted import COMPACTED_FOLDER, MARK, Records
from arroyo_filesystem.location import Location
from arroyo_filesystem.manifests import MANIFEST_FOLDER


class Outputs:
    """Those of one moment: where the next ones have equal records, nothing was compacted in between."""

    def __init__(self, location: Location, root: str, names: Iterable[str]) -> None:
        """`names` are the full paths that were found below `root`. Raises `PermissionError` of folders there."""
        self._location = location
        self._root = root.rstrip("/")
        #: By folder.
        self._records: dict[str, Records] = {}
        self._known: set[str] = set()
        #: Whether folders above the root may have records that cannot be read.
        self.is_partial = False
        for folder in _above(self._root):
            self._read(folder)
        found = list(names)
        for name in found:
            self._read_sink_of_list(name)
        marked = [name for name in found if is_marked(name)]
        for name in marked:
            self._find_sink(name)
        #: A file that is found with one that it replaces, by their names, where nobody can say which of them counts.
        self.doubtful: str | None = None
        if self.is_partial and (unknown := [name for name in marked if name not in self._known]):
            files = Counter(_first_replaced(name) for name in found)
            self.doubtful = next((name for name in unknown if files[_first_replaced(name)] > 1), None)

    @property
    def records(self) -> dict[str, Records]:
        """Of each folder that has some."""
        return {folder: records for folder, records in self._records.items() if records.last}

    @property
    def hidden(self) -> set[str]:
        """Full paths of files whose rows do not count."""
        return {path for folder, records in self.records.items() for path in self._full(folder, records.hidden)}

    def replaces(self, name: str) -> bool:
        """Whether a file that was found replaces others, or may do so for all that can be known."""
        return is_marked(name) and (name in self._known or self.is_partial)

    def _full(self, folder: str, paths: Iterable[str]) -> Iterator[str]:
        place = Location(self._location.fs, folder, self._location.url)
        return (place.child(path) for path in paths)

    def _read_sink_of_list(self, name: str) -> None:
        """Read the records of a sink whose lists are among what was found: it may be compacted for the first time."""
        for listing in (MANIFEST_FOLDER, COMPACTED_FOLDER):
            folder, is_list, _ = name.rpartition(f"/{listing}/")
            if is_list and self._is_inside(folder):
                self._read(folder)

    def _find_sink(self, name: str) -> None:
        """Read the records that have a file which replaces others; all that there are, if none has."""
        inside = [folder for folder in _folders(name) if self._is_inside(folder)]
        # A folder of a partition is seldom that of a sink.
        for folder in sorted(inside, key=_is_partition):
            if name in self._known:
                return
            self._read(folder)

    def _is_inside(self, folder: str) -> bool:
        return folder == self._root or folder.startswith(f"{self._root}/")

    def _read(self, folder: str) -> None:
        if folder in self._records:
            return
        place = Location(self._location.fs, folder, self._location.url)
        policy, is_above = current_policy(), not self._is_inside(folder)
        records = Records()
        if policy.is_untrusted and not is_below(place.child(COMPACTED_FOLDER), policy.roots):
            # Nobody untrusted looks above what may be read.
            self.is_partial = True
        else:
            try:
                records = Records.read(place)
            except PermissionError:
                if not is_above:
                    raise
                self.is_partial = True
        self._records[folder] = records
        merges = (merge.path for record in (*records.complete, *records.begun) for merge in record.merges)
        self._known.update(self._full(folder, merges))


def is_marked(name: str) -> bool:
    """Whether a file has the name of one that replaces others; anybody may have given it."""
    return MARK in name.rpartition("/")[2]


def _first_replaced(name: str) -> str:
    """The name of the first file that was replaced by one, and by what replaced that; of other files their own."""
    folder, _, name = name.rpartition("/")
    stem, _, extension = name.rpartition(".")
    return f"{folder}/{stem.partition(MARK)[0] if is_marked(name) else stem}.{extension}"


def _above(root: str) -> Iterator[str]:
    """A folder, and those that it is a partition of: `out/country=NL`, `out`."""
    yield root
    while _is_partition(root) and "/" in root:
        root = root.rpartition("/")[0]
        yield root


def _folders(name: str) -> Iterator[str]:
    """The folders of a file, from its own upwards."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _is_partition(folder: str) -> bool:
    return "=" in folder.rpartition("/")[2]
