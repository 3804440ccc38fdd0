"""The actions of `arroyo udf` that make, test, sign and ship bundles of user functions."""

from __future__ import annotations

import argparse
from pathlib import Path

from arroyo_core.cli.commands import Commands
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.udf import read_bundle
from arroyo_core.pipeline.udfs import is_local
from arroyo_core.pipeline.views.labels import count
from arroyo_core.state import get_storage_provider
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.signing import SIGNATURE_SUFFIX, require_signing


def add_actions(commands: Commands) -> None:
    actions = commands.actions("udf")

    build = actions.add_parser("build", help="make a bundle", description="Make a bundle; equal sources, equal bytes.")
    build.add_argument("source", metavar="SRC", help="a folder with a pyproject.toml, or one .py file")
    build.add_argument("-o", "--output", default=".", metavar="DIR", help="where the bundle goes (default: here)")
    build.set_defaults(command=_build, runs_pipelines=True)

    push = actions.add_parser(
        "push",
        help="put a bundle into storage, and print the lines for YAML",
        description="Put a bundle under its own name below URL, with its signature if there is one, and print the "
        "lines for a pipeline file. Another content under that name is never overwritten.",
    )
    push.add_argument("file", metavar="FILE", help="a bundle")
    push.add_argument("url", metavar="URL", help="a folder that fsspec can open, such as s3://bucket/udfs")
    push.set_defaults(command=_push)

    test = actions.add_parser(
        "test",
        help="run the examples of a bundle",
        description="Load a bundle, compare its functions with its manifest, and run the examples in its docstrings. "
        "Exit code 2 if anything is wrong.",
    )
    test.add_argument("file", metavar="FILE", help="a bundle")
    test.set_defaults(command=_test, runs_pipelines=True)

    keygen = actions.add_parser(
        "keygen",
        help="make a key for signing",
        description="Make an Ed25519 key. The private key goes to FILE; the line for trust files is printed.",
    )
    keygen.add_argument("file", metavar="FILE", help="where the private key goes; nothing is overwritten")
    keygen.set_defaults(command=_keygen)

    sign_ = actions.add_parser(
        "sign", help="sign a bundle", description=f"Write the signature of a bundle to FILE{SIGNATURE_SUFFIX}."
    )
    sign_.add_argument("file", metavar="FILE", help="a bundle")
    sign_.add_argument("--key", required=True, metavar="KEY", help="a private key of `arroyo udf keygen`")
    sign_.set_defaults(command=_sign)


def _build(args: argparse.Namespace) -> int:
    # Imported here and below, because they bring a lot: no other command should wait for that.
    from arroyo_devtools.bundles.building import build_bundle

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


def _test(args: argparse.Namespace) -> int:
    from arroyo_devtools.bundles.examples import check_bundle

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


def _keygen(args: argparse.Namespace) -> int:
    require_signing()
    from arroyo_devtools.bundles.signing import make_key

    print(make_key(args.file))
    return OK


def _sign(args: argparse.Namespace) -> int:
    require_signing()
    from arroyo_devtools.bundles.signing import sign

    data, _ = read_bundle(args.file)
    target = Path(f"{args.file}{SIGNATURE_SUFFIX}")
    signature = sign(data, args.key)
    try:
        target.write_bytes(signature)
    except OSError as error:
        raise BundleError(f"cannot write {target}: {error.strerror or error}") from error
    print(target)
    return OK
