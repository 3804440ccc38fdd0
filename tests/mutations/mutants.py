"""The mutants: each is made from a file of the corpus by its seed and number alone."""

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
#: Of connectors and queries, more than examples have.
PIPELINES = Path(__file__).parent / "pipelines"
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_INCLUDE, _ALIAS = "@include:", "@alias:"

VALUES: Sequence[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0, float("inf"), float("nan"), "",
    " ", "null", "~", "${HOME}", "${PATH:-x}", "${", "$$", "$", "/etc/passwd", "file:///etc/passwd", "../../x", "~/x",
    "./", ".", "*", "**/*", "/dev/zero", "/dev/stdin", "/proc/self/environ", "http://127.0.0.1:9/x",
    "https://127.0.0.1:9/${HOME}", "s3://bucket/x.parquet", "memory://x", "zip://a::file:///etc/passwd.zip",
    "github://a:b@c/x", "\x00", "\x1b[31m", "\u202e", "\ud7ff", "🦀" * 50, "a" * 5000, "(" * 200, "[" * 200, "{" * 50,
    "(a+)+$", "1s", "-1s", "1h30m", "9999999999999d", "1GiB", "1e400", "0x10", "2026-01-01", "2026-13-99T99:99:99Z",
    "price > 100", "1 / 0", "sum(1) over ()", "(select 1)", "cast('x' as bigint)", "x' or 'x' = 'x", "now()",
    "SELECT 1", "SELECT * FROM timed, timed", "a; drop table b", 'a"b', "a`b", "postgresql://a:b@127.0.0.1:9/c",
    "mysql://a:b@127.0.0.1:9/c", "sqlite:////etc/passwd",
    "repeat('a', 100000)", "case when true then 1 end", "a.b.c", '"', "'", "--", "/*", ";", "this:X", "os:system",
    f"{_INCLUDE}/etc/passwd", f"{_INCLUDE}../../../etc/passwd", f"{_INCLUDE}.", f"{_INCLUDE}/dev/zero",
    f"{_ALIAS}x", [], {}, [[]], [{}], {"": ""}, {"a": {"b": {"c": [1, 2, 3]}}}, ["x"] * 200,
    {f"c{number}": "int64" for number in range(300)},
]  # fmt: skip
KEYS = ("name", "nodes", "id", "operator", "inputs", "config", "parallelism", "checkpoint", "udfs", "url", "sha256",
        "as", "parameters", "tests", "was", "<<", "path", "format", "schema", "files", "table", "function", "keys",
        "predicate", "expressions", "query", "storage_options", "client", "registry", "schema_file",
        "lookup", "connection", "catalog", "properties", "topic", "mode", "slot", "branch", "start",
        "columns")  # fmt: skip


def corpus() -> list[tuple[str, bytes]]:
    """The files that mutants are made of, with their paths below the repository."""
    places = (ROOT / "examples").rglob("*.yaml"), (ROOT / "tests" / "broken").glob("*.yaml"), PIPELINES.glob("*.yaml")
    files = [file for place in places for file in sorted(place)]
    return [(str(file.relative_to(ROOT)), file.read_bytes()) for file in files]


def mutant(files: Sequence[tuple[str, bytes]], seed: int, number: int) -> tuple[str, bytes]:
    """The path of the file it comes from, and its bytes; the same for the same arguments."""
    chance = random.Random(f"{seed}:{number}")
    path, data = chance.choice(files)
    if chance.random() < 0.6:
        data = _mutate_tree(data, files, chance)
    if chance.random() < 0.5:
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            data = mutate_bytes(data, files, chance)
    return path, data


def mutate_bytes(data: bytes, files: Sequence[tuple[str, bytes]], chance: random.Random) -> bytes:
    """With one change: of a byte, of a range, with a token that means something, or with a part of another file."""
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 2, 8, 64)))
    match chance.randrange(7):
        case 0:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:at] + chance.randbytes(chance.randrange(1, 9)) + data[at:]
        case 3:
            return data[:at] + data[at:end] * chance.choice((2, 10, 300)) + data[end:]
        case 4:
            _, other = chance.choice(files)
            start = chance.randrange(len(other) + 1)
            return data[:at] + other[start : start + chance.choice((8, 64, 512))] + data[at:]
        case 5:
            return data[:at]
        case _:
            token = chance.choice((b"!include /etc/passwd", b"&x ", b"*x", b"<<: *x\n", b"!!python/object:os.system ",
                                   b"---\n", b"${HOME}", b"\t", b"- ", b": ", b"{", b"[", b"'", b'"', b"|\n", b"#",
                                   b"\xef\xbb\xbf", b"\xff", b"\r", b'"\\ud800"', b'"\\UFFFFFFFF"',
                                   b"\xe2\x80\xa8"))  # fmt: skip
            return data[:at] + token + data[at:]


def _mutate_tree(data: bytes, files: Sequence[tuple[str, bytes]], chance: random.Random) -> bytes:
    tree = pickle.loads(_parse(data))
    if tree is None:
        return data
    _, other = chance.choice(files)
    donor = pickle.loads(_parse(other))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        _mutate_place(tree, donor, chance)
    text = _dump(tree, is_flow=chance.random() < 0.3)
    return _with_tags(text).encode("utf-8", errors="surrogatepass")


def _dump(tree: Any, *, is_flow: bool) -> str:
    usual = sys.getrecursionlimit()
    # Values are nested several hundred deep: not every one can be written otherwise.
    sys.setrecursionlimit(10 * usual)
    try:
        dumped = yaml.dump(tree, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, default_flow_style=is_flow)
    finally:
        sys.setrecursionlimit(usual)
    return str(dumped)


@cache
def _parse(data: bytes) -> bytes:
    """The values of a file, pickled, as each mutant changes its own; None where it cannot be changed."""
    return pickle.dumps(_parsed(data))


def _parsed(data: bytes) -> Any:
    try:
        tree = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    # The bomb of aliases would be written out.
    return tree if isinstance(tree, dict) and len(data) < 20_000 and data.count(b"*") < 20 else None


def _mutate_place(tree: Any, donor: Any, chance: random.Random) -> None:
    holders = [holder for holder in _holders(tree) if len(holder)]
    if not holders:
        return
    holder = chance.choice(holders)
    key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    match chance.randrange(8):
        case 0 | 1 | 2:
            holder[key] = _some_value(chance)
        case 3:
            del holder[key]
        case 4:
            grafts = [each for each in _holders(donor) if len(each)] if donor is not None else []
            holder[key] = chance.choice(grafts) if grafts else None
        case 5 if isinstance(holder, list):
            holder.extend([holder[key]] * chance.choice((1, 2, 50)))
        case 5 | 6 if isinstance(holder, dict):
            holder[chance.choice(KEYS)] = holder.pop(key) if chance.random() < 0.5 else _some_value(chance)
        case _:
            value = holder[key]
            for _ in range(chance.choice((1, 2, 80))):
                value = [value] if chance.random() < 0.5 else {chance.choice(KEYS): value}
            holder[key] = value


def _some_value(chance: random.Random) -> Any:
    # A copy: what is changed in it must not be in the next mutant.
    return copy.deepcopy(chance.choice(VALUES))


def _holders(tree: Any) -> list[Any]:
    found, left, seen = [], [tree], set()
    while left:
        each = left.pop()
        if isinstance(each, dict | list) and id(each) not in seen:
            seen.add(id(each))
            found.append(each)
            left += each.values() if isinstance(each, dict) else each
    return found


def _with_tags(text: str) -> str:
    for mark, tag in ((_INCLUDE, "!include "), (_ALIAS, "*")):
        text = text.replace(f"'{mark}", f"{tag}'").replace(f'"{mark}', f'{tag}"').replace(mark, tag)
    return text
