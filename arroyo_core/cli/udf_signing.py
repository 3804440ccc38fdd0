"""`arroyo udf keygen`, `sign` and `verify`."""

from __future__ import annotations

import argparse
from pathlib import Path

from arroyo_core.cli.exits import OK
from arroyo_core.udf.bundle import parse_bundle
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.signing import SIGNATURE_SUFFIX, check_trusted, make_key, read_trust, require_signing, sign


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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

    verify = actions.add_parser(
        "verify",
        help="check the signature of a bundle",
        description="Check that a bundle is signed by a key of the trust file; exit code 2 if it is not.",
    )
    verify.add_argument("file", metavar="FILE", help="a bundle")
    verify.add_argument("--trust", required=True, metavar="FILE", help="a line for each key: the key, then a name")
    verify.set_defaults(command=_verify)


def _keygen(args: argparse.Namespace) -> int:
    require_signing()
    print(make_key(args.file))
    return OK


def _sign(args: argparse.Namespace) -> int:
    require_signing()
    data = _read(args.file)
    parse_bundle(data, expected_sha256=None, what=args.file)
    target = Path(f"{args.file}{SIGNATURE_SUFFIX}")
    signature = sign(data, args.key)
    try:
        target.write_bytes(signature)
    except OSError as error:
        raise BundleError(f"cannot write {target}: {error.strerror or error}") from error
    print(target)
    return OK


def _verify(args: argparse.Namespace) -> int:
    data = _read(args.file)
    beside = Path(f"{args.file}{SIGNATURE_SUFFIX}")
    signature = _read(str(beside)) if beside.exists() else None
    name = check_trusted(data, signature, read_trust(args.trust), what=args.file)
    print(f"{args.file}: signed by {name}")
    return OK


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror or error}") from error
