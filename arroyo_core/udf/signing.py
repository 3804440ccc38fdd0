"""Signatures of bundles: Ed25519, in a file beside the bundle; a trust file lists the keys that may sign.

A trust file has a line for each key: the public key in base64, then a name. `#` begins a comment.
Needs the extra `signing`, which brings `cryptography`; nothing else here does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.udf.failures import UntrustedBundleError

#: The path of the trust file; where it is set, bundles without a good signature are refused.
TRUST_VARIABLE = "ARROYO_UDF_TRUST"
SIGNATURE_SUFFIX = ".sig"

#: Signed before the digest, so that a signature for something else never fits a bundle.
_CONTEXT = b"arroyo-udf-bundle-v1\n"
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Trust:
    """Names of those who may sign, by their public keys; `path` is for errors."""

    path: str
    keys: Mapping[bytes, str]


def configured_trust() -> Trust | None:
    """The trust file of this environment, None where none is configured; raises `SetupError` for one that is wrong."""
    path = os.environ.get(TRUST_VARIABLE, "")
    return read_trust(path) if path else None


def read_trust(path: str | Path) -> Trust:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the trust file {path} cannot be read: {error}") from error
    keys = {}
    for number, line in enumerate(lines, start=1):
        text, _, name = line.partition("#")[0].strip().partition(" ")
        if text:
            keys[decode_key(text, f"{path}, line {number}")] = name.strip() or text[:8]
    if not keys:
        raise SetupError(f"the trust file {path} has no keys: nothing could be trusted")
    return Trust(str(path), keys)


def check_trusted(data: bytes, signature: bytes | None, trust: Trust, *, what: str) -> str:
    """The name of who signed; raises `UntrustedBundleError` if nobody in the trust file did."""
    require_signing()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if signature is None:
        raise UntrustedBundleError(
            f"{what} is not signed (no file {SIGNATURE_SUFFIX} beside it), and {trust.path} is configured: "
            "sign it with `arroyo udf sign`"
        )
    public_key, signed = _read_signature(signature, what)
    name = trust.keys.get(public_key)
    if name is None:
        key = base64.b64encode(public_key).decode()
        raise UntrustedBundleError(f"{what} is signed with the key {key}, which is not in {trust.path}")
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signed, signed_message(data))
    except InvalidSignature as error:
        raise UntrustedBundleError(f"{what} is not what {name} signed: the signature does not fit it") from error
    return name


def require_signing() -> None:
    """Raises `SetupError` that says what to install where `cryptography` is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise SetupError("signatures need the extra 'signing': pip install 'arroyo-core[signing]'") from error


def signed_message(data: bytes) -> bytes:
    """What a signature of a bundle is made over."""
    return _CONTEXT + hashlib.sha256(data).digest()


def decode_key(text: str, place: str) -> bytes:
    """The bytes of a key, public or private; `place` is for the `SetupError` where it is not one."""
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        raise SetupError(f"{place}: an Ed25519 key is {_KEY_BYTES} bytes in base64; `arroyo udf keygen` makes one")
    return key


def _read_signature(signature: bytes, what: str) -> tuple[bytes, bytes]:
    try:
        document = json.loads(signature)
        if document["algorithm"] != "ed25519":
            raise UntrustedBundleError(f"{what} is signed with {document['algorithm']!r:.40}; only ed25519 is known")
        return base64.b64decode(document["public_key"]), base64.b64decode(document["signature"])
    except (ValueError, KeyError, TypeError) as error:
        raise UntrustedBundleError(f"the signature of {what} cannot be read: {error}") from error
