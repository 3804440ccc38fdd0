"""Keys, and signatures of bundles; who runs bundles checks them with `arroyo_core.udf.signing`."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.signing import decode_key, signed_message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


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
        "signature": base64.b64encode(key.sign(signed_message(data))).decode(),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _private_key(path: str | Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"the private key {path} cannot be read: {error}") from error
    return Ed25519PrivateKey.from_private_bytes(decode_key(text, str(path)))
