"""`arroyo udf`: make bundles of user functions, look at them, and put them where pipelines find them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from arroyo_core.cli import udf_signing
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.errors import ArroyoError
from arroyo_core.pipeline.udfs import is_local
from arroyo_core.pipeline.views.labels import count
from arroyo_core.state import get_storage_provider
from arroyo_core.udf.bundle import Bundle, parse_bundle, sha256_of
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.signing import SIGNATURE_SUFFIX

_SUFFIXES = (".whl", ".zip")


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "udf",
        group=CommandGroup.EXTENSIONS,
        help="make and ship bundles of user functions",
        description="Make and ship bundles of user functions. A bundle is a pure-Python wheel or a zip of one module.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    build = actions.add_parser("build", help="make a bundle", description="Make a bundle; equal sources, equal bytes.")
    build.add_argument("source", metavar="SRC", help="a folder with a pyproject.toml, or one .py file")
    build.add_argument("-o", "--output", default=".", metavar="DIR", help="where the bundle goes (default: here)")
    build.set_defaults(command=_build)

    push = actions.add_parser(
        "push",
        help="put a bundle into storage, and print the lines for YAML",
        description="Put a bundle under its own name below URL, with its signature if there is one, and print the "
        "lines for a pipeline file. Another content under that name is never overwritten.",
    )
    push.add_argument("file", metavar="FILE", help="a bundle")
    push.add_argument("url", metavar="URL", help="a folder that fsspec can open, such as s3://bucket/udfs")
    push.set_defaults(command=_push)

    ls = actions.add_parser("ls", help="list the bundles below a URL", description="List the bundles below a URL.")
    ls.add_argument("url", metavar="URL", help="a folder")
    add_format(ls)
    ls.set_defaults(command=_ls)

    test = actions.add_parser(
        "test",
        help="run the examples of a bundle",
        description="Load a bundle, compare its functions with its manifest, and run the examples in its docstrings. "
        "Exit code 2 if anything is wrong.",
    )
    test.add_argument("file", metavar="FILE", help="a bundle")
    test.set_defaults(command=_test)
    udf_signing.add_actions(actions)


def _build(args: argparse.Namespace) -> int:
    # Imported here and below, because they bring a lot: no other command should wait for that.
    from arroyo_core.udf.building import build_bundle

    built = build_bundle(args.source)
    folder = Path(args.output)
    path = folder / built.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(built.data)
    except OSError as error:
        raise BundleError(f"cannot write {path}: {error.strerror or error}") from error
    print(path)
    print(f"  sha256 {built.sha256}")
    for function in built.manifest.functions:
        print(f"  {function.signature}")
    return OK


def _push(args: argparse.Namespace) -> int:
    data, bundle = read_bundle(args.file)
    name = Path(args.file).name
    storage = get_storage_provider(args.url)
    if not storage.put_if_absent(name, data):
        raise BundleError(
            f"{storage.url}/{name} is there already, with another content: pipelines pin what is there, so it is not "
            "overwritten; give the bundle another version"
        )
    signature = Path(f"{args.file}{SIGNATURE_SUFFIX}")
    if signature.exists():
        storage.write(f"{name}{SIGNATURE_SUFFIX}", signature.read_bytes())
    url = storage.url if not is_local(storage.url) or "://" in storage.url else str(Path(storage.url).absolute())
    print("udfs:")
    print(f'  - url: "{url}/{name}"')
    print(f"    sha256: {bundle.sha256}")
    return OK


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


def _test(args: argparse.Namespace) -> int:
    from arroyo_core.udf.doctests import check_bundle

    _, bundle = read_bundle(args.file)
    report = check_bundle(bundle)
    for signature in report.signatures:
        print(signature)
    for failure in report.failures:
        print(failure, end="")
    verdict = f"{len(report.failures)} failed" if report.failures else "all as they say"
    functions = count(len(report.signatures), "function")
    print(f"{bundle}: {functions}, {count(report.attempted, 'example')}, {verdict}")
    return MISTAKE if report.failures else OK


def read_bundle(path: str) -> tuple[bytes, Bundle]:
    """A bundle of this machine, and its bytes."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror or error}") from error
    return data, parse_bundle(data, expected_sha256=None, what=path)
