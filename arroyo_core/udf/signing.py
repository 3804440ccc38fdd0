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
from typing import TYPE_CHECKING

from arroyo_core.errors import SetupError
from arroyo_core.udf.failures import BundleError, UntrustedBundleError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
            keys[_decoded(text, f"{path}, line {number}")] = name.strip() or text[:8]
    if not keys:
        raise SetupError(f"the trust file {path} has no keys: nothing could be trusted")
    return Trust(str(path), keys)


def make_key(path: str | Path) -> str:
    """Write a new private key, readable by its owner only; gives the line for a trust file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    target = Path(path)
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise BundleError(f"{target} is there already: a key is not overwritten") from error
    except OSError as error:
        raise BundleError(f"cannot write {target}: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64encode(key.private_bytes_raw()) + b"\n")
    return f"{base64.b64encode(key.public_key().public_bytes_raw()).decode()} {target.stem}"


def sign(data: bytes, key_path: str | Path) -> bytes:
    """The content of the file beside a bundle, made with the private key in `key_path`."""
    key = _private_key(key_path)
    document = {
        "algorithm": "ed25519",
        "public_key": base64.b64encode(key.public_key().public_bytes_raw()).decode(),
        "signature": base64.b64encode(key.sign(_message(data))).decode(),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


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
        Ed25519PublicKey.from_public_bytes(public_key).verify(signed, _message(data))
    except InvalidSignature as error:
        raise UntrustedBundleError(f"{what} is not what {name} signed: the signature does not fit it") from error
    return name


def require_signing() -> None:
    """Raises `SetupError` that says what to install where `cryptography` is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise SetupError("signatures need the extra 'signing': pip install 'arroyo-core[signing]'") from error


def _message(data: bytes) -> bytes:
    return _CONTEXT + hashlib.sha256(data).digest()


def _private_key(path: str | Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"the private key {path} cannot be read: {error}") from error
    return Ed25519PrivateKey.from_private_bytes(_decoded(text, str(path)))


def _decoded(text: str, place: str) -> bytes:
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
