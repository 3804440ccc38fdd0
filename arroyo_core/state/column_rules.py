"""Columns of a table that may come and go: what an operator allows, and what became of each since a checkpoint; pure.

A column has a path: its name, or for a field of a struct (or of a list of structs) the names that lead to it, joined by
dots. Old files stay as they are. Each reference to one says which columns of the table it has no values for, so that a
column that went and one of the same name that came later are two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from arroyo_core.proto import state_pb2 as pb


@dataclass(frozen=True, slots=True)
class ColumnOwner:
    """What a column belongs to: `name` is for people, such as `aggregate total`.

    The columns of an owner come and go together. One that came takes over the values of one that went and has the same
    `identity`, if there is only one of each: then it is the same under another name.
    """

    name: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """Says that columns of an expiring table may come and go, beside its keys and its event time.

    A column that is new is null in old rows, one that went is left out of them, and an integer or a float may become
    wider. The order of columns does not matter.
    """

    #: Columns that must be there, or be missing, as they were.
    fixed: tuple[str, ...] = ()
    #: By path.
    owners: Mapping[str, ColumnOwner] = field(default_factory=dict)
    #: Why no column may be new, as a clause; empty where columns may.
    closed: str = ""

    def encode(self) -> pb.ColumnRules:
        owners = {path: pb.ColumnOwner(name=owner.name, identity=owner.identity) for path, owner in self.owners.items()}
        return pb.ColumnRules(fixed=self.fixed, owners=owners, closed=self.closed)


def decode_rules(config: pb.ExpiringKeyedTimeTableConfig) -> ColumnRules | None:
    """Those of a table; None if its columns are fixed."""
    if not config.HasField("column_rules"):
        return None
    rules = config.column_rules
    owners = {path: ColumnOwner(owner.name, owner.identity) for path, owner in rules.owners.items()}
    return ColumnRules(fixed=tuple(rules.fixed), owners=owners, closed=rules.closed)


def column_path(parent: str, name: str) -> str:
    """The path of a column within another; at the top, that is the empty text."""
    escaped = name.replace("\\", "\\\\").replace(".", "\\.")
    return f"{parent}.{escaped}" if parent else escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """A column whose type is another one."""

    path: str
    before: pa.DataType
    after: pa.DataType


@dataclass(slots=True)
class ColumnChanges:
    """What became of the columns of a table, all by path."""

    added: dict[str, pa.Field] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    #: The new path, and the name and the path that it had.
    renamed: dict[str, tuple[str, str]] = field(default_factory=dict)
    widened: list[TypeChange] = field(default_factory=list)
    #: To types that cannot hold the old values.
    retyped: list[TypeChange] = field(default_factory=list)


def compare_columns(
    before: pa.Schema, after: pa.Schema, *, written: ColumnRules | None, declared: ColumnRules | None
) -> ColumnChanges:
    """What changed from one schema to another."""
    changes = ColumnChanges()
    owners = (written.owners if written else {}, declared.owners if declared else {})
    _compare_fields(list(before), list(after), "", owners, changes)
    return changes


def derive_refusal(changes: ColumnChanges, *, written: ColumnRules | None, declared: ColumnRules) -> str | None:
    """Why a table with these rules cannot take over rows after such changes, as the end of a sentence; else None."""
    for change in changes.retyped:
        return f"has column {_shown(change.path)} as {change.before} in the checkpoint, and now it is {change.after}"
    for path in [*changes.added, *changes.removed]:
        if path in declared.fixed or (written is not None and path in written.fixed):
            what = "no column" if path in changes.added else "a column"
            return f"has {what} {_shown(path)} in the checkpoint, which must stay so"
    for path, added in changes.added.items():
        if declared.closed:
            return f"has no column {_shown(path)} in the checkpoint, and none may be new: {declared.closed}"
        if not added.nullable:
            return f"has no column {_shown(path)} in the checkpoint, and it must not be null"
    if written is None and declared.owners and (changes.added or changes.removed):
        names = ", ".join(map(_shown, [*changes.added, *changes.removed]))
        return (
            f"was written by an earlier version, which did not record what its columns belong to ({names} came or "
            "went): run the pipeline as it was once with this version, until it has a checkpoint, and change it then"
        )
    return _derive_split(changes, written.owners if written is not None else {}, declared.owners)


def describe_columns(
    changes: ColumnChanges, *, written: ColumnRules | None, declared: ColumnRules | None
) -> tuple[str, ...]:
    """In words, each a clause: `new column x is null in old rows`, `aggregate total added`."""
    before, after = written.owners if written else {}, declared.owners if declared else {}
    found = [
        *(
            f"{before[old].name} goes on as {after[path].name}"
            for path, (_, old) in changes.renamed.items()
            if before[old].name != after[path].name
        ),
        *(
            f"{after[path].name} added" if path in after else f"new column {_shown(path)} is null in old rows"
            for path in changes.added
        ),
        *(
            f"{before[path].name} removed" if path in before else f"column {_shown(path)} is left out of old rows"
            for path in changes.removed
        ),
        *(f"column {_shown(each.path)} {each.before} -> {each.after}" for each in changes.widened),
    ]
    return tuple(dict.fromkeys(found))


def name_columns(changes: ColumnChanges, names: Mapping[str, str]) -> dict[str, str]:
    """The `column_names` of a file after these changes, from those it had."""
    named = dict(names)
    for path, (name, old) in changes.renamed.items():
        named[path] = names.get(old, name)
        named |= {f"{path}{each[len(old) :]}": names[each] for each in names if each.startswith(f"{old}.")}
    taken = {old for _, old in changes.renamed.values()}
    return named | dict.fromkeys([*changes.added, *changes.removed, *(taken - changes.renamed.keys())], "")


def _compare_fields(
    before: Sequence[pa.Field],
    after: Sequence[pa.Field],
    parent: str,
    owners: tuple[Mapping[str, ColumnOwner], Mapping[str, ColumnOwner]],
    changes: ColumnChanges,
) -> None:
    old, new = {each.name: each for each in before}, {each.name: each for each in after}
    gone, came = [name for name in old if name not in new], [name for name in new if name not in old]
    former = _match_renames(gone, came, parent, owners)
    for name, each in new.items():
        path, source = column_path(parent, name), former.get(name, name)
        if source not in old:
            changes.added[path] = each
            continue
        if source != name:
            changes.renamed[path] = (source, column_path(parent, source))
        _compare_types(old[source].type, each.type, path, owners, changes)
    changes.removed.extend(column_path(parent, name) for name in gone if name not in former.values())


def _match_renames(
    gone: Sequence[str],
    came: Sequence[str],
    parent: str,
    owners: tuple[Mapping[str, ColumnOwner], Mapping[str, ColumnOwner]],
) -> dict[str, str]:
    """New names with the old ones of the same identity, where there is only one of each."""
    before, after = (
        {name: known[path].identity for name in names if (path := column_path(parent, name)) in known}
        for names, known in zip((gone, came), owners, strict=True)
    )
    counts = Counter(before.values()), Counter(after.values())
    by_identity = {identity: name for name, identity in before.items() if counts[0][identity] == 1}
    return {
        name: by_identity[identity]
        for name, identity in after.items()
        if identity in by_identity and counts[1][identity] == 1
    }


def _compare_types(
    before: pa.DataType,
    after: pa.DataType,
    path: str,
    owners: tuple[Mapping[str, ColumnOwner], Mapping[str, ColumnOwner]],
    changes: ColumnChanges,
) -> None:
    if before == after:
        return
    if pa.types.is_struct(before) and pa.types.is_struct(after):
        _compare_fields(list(before), list(after), path, owners, changes)
    elif is_list(before) and is_list(after) and before.id == after.id:
        _compare_types(before.value_type, after.value_type, path, owners, changes)
    else:
        change = TypeChange(path=path, before=before, after=after)
        (changes.widened if is_wider(before, after) else changes.retyped).append(change)


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any number of values."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def is_wider(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether a number of one type is the same number in the other, whatever it is."""
    if pa.types.is_floating(before) and pa.types.is_floating(after):
        return bool(before.bit_width < after.bit_width)
    if not (pa.types.is_integer(before) and pa.types.is_integer(after)):
        return False
    if pa.types.is_signed_integer(before) and pa.types.is_unsigned_integer(after):
        return False
    return bool(before.bit_width < after.bit_width)


def _derive_split(
    changes: ColumnChanges, before: Mapping[str, ColumnOwner], after: Mapping[str, ColumnOwner]
) -> str | None:
    """What stayed, and is kept in other columns than it was: its old values would be lost without a word."""
    former, now = {owner.name for owner in before.values()}, {owner.name for owner in after.values()}
    changed = [*(before[path] for path in changes.removed if path in before)]
    changed += [after[path] for path in changes.added if path in after]
    for owner in changed:
        if owner.name in former and owner.name in now:
            columns = tuple(
                ", ".join(_shown(path) for path in sorted(known) if known[path].name == owner.name)
                for known in (before, after)
            )
            return f"keeps {owner.name} in {columns[0]} in the checkpoint, and now in {columns[1]}"
    return None


def _shown(path: str) -> str:
    """Without the columns of the operator's own that a user's column is in."""
    names = list(_split(path))
    own = next((place for place, name in enumerate(names) if not name.startswith("_")), len(names) - 1)
    return ".".join(names[own:])


def _split(path: str) -> Iterator[str]:
    name = ""
    letters = iter(path)
    for letter in letters:
        if letter == "\\":
            name += next(letters)
        elif letter == ".":
            yield name
            name = ""
        else:
            name += letter
    yield name
