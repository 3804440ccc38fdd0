"""`arroyo udf`: looks at bundles of user functions; plugins add actions that make and ship them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.errors import ArroyoError
from arroyo_core.state import get_storage_provider
from arroyo_core.udf.bundle import Bundle, parse_bundle, sha256_of
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.signing import SIGNATURE_SUFFIX, check_trusted, read_trust

_SUFFIXES = (".whl", ".zip")


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "udf",
        group=CommandGroup.EXTENSIONS,
        runs_pipelines=False,
        help="make and ship bundles of user functions",
        description="Make and ship bundles of user functions. A bundle is a pure-Python wheel or a zip of one module.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    ls = actions.add_parser("ls", help="list the bundles below a URL", description="List the bundles below a URL.")
    ls.add_argument("url", metavar="URL", help="a folder")
    add_format(ls)
    ls.set_defaults(command=_ls)

    verify = actions.add_parser(
        "verify",
        help="check the signature of a bundle",
        description="Check that a bundle is signed by a key of the trust file; exit code 2 if it is not.",
    )
    verify.add_argument("file", metavar="FILE", help="a bundle")
    verify.add_argument("--trust", required=True, metavar="FILE", help="a line for each key: the key, then a name")
    verify.set_defaults(command=_verify)


def _ls(args: argparse.Namespace) -> int:
    storage = get_storage_provider(args.url)
    found = {file.path for file in storage.list_root()}
    names = sorted(path for path in found if path.endswith(_SUFFIXES))
    bundles = (_listed(name, storage.read(name), is_signed=f"{name}{SIGNATURE_SUFFIX}" in found) for name in names)
    if args.format == JSON:
        print(json.dumps([asdict(bundle) for bundle in bundles], indent=2))
        return OK
    for bundle in bundles:
        print(f"{bundle.name}{'  (signed)' if bundle.is_signed else ''}")
        print(f"  sha256 {bundle.sha256}")
        for line in [f"no bundle: {bundle.error}"] if bundle.error else bundle.functions:
            print(f"  {line}")
    if not names:
        print(f"no bundles below {storage.url}")
    return OK


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A bundle in storage; `error` says why it is not one."""

    name: str
    sha256: str
    is_signed: bool
    functions: Sequence[str] = ()
    error: str | None = None


def _listed(name: str, data: bytes, *, is_signed: bool) -> _Listed:
    listed = _Listed(name=name, sha256=sha256_of(data), is_signed=is_signed)
    try:
        bundle = parse_bundle(data, expected_sha256=None, what=name)
    except ArroyoError as error:
        return replace(listed, error=str(error))
    return replace(listed, functions=[function.signature for function in bundle.manifest.functions])


def _verify(args: argparse.Namespace) -> int:
    data = read_file(args.file)
    beside = Path(f"{args.file}{SIGNATURE_SUFFIX}")
    signature = read_file(str(beside)) if beside.exists() else None
    name = check_trusted(data, signature, read_trust(args.trust), what=args.file)
    print(f"{args.file}: signed by {name}")
    return OK


def read_bundle(path: str) -> tuple[bytes, Bundle]:
    """A bundle of this machine, and its bytes."""
    data = read_file(path)
    return data, parse_bundle(data, expected_sha256=None, what=path)


def read_file(path: str) -> bytes:
    """Raises `BundleError` for what cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror or error}") from error
