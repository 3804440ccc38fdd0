"""Seals: with a key, metadata carries an HMAC, and nothing is restored from a file that somebody else has written.

A seal covers the content of a file and its path, so the job, the epoch or generation, and what the file is: a sealed
file in another place is not what it claims to be. Data files are covered by their checksums, which are in the metadata.
Only drivers and commands have keys; executors are told what to read, with checksums.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import Message

from arroyo_core.errors import SetupError
from arroyo_core.state.envelope import DIGEST_BYTES, MessageT, decode_payload, seal, unseal
from arroyo_core.state.failures import SealError, SealKeyError

#: Keys, with blanks between them: the first seals, all of them verify.
KEY_VARIABLE = "ARROYO_SEAL_KEY"
#: A file with keys, one in a line; lines that begin with `#` are for people.
FILE_VARIABLE = "ARROYO_SEAL_KEY_FILE"
SEAL_VARIABLES = (KEY_VARIABLE, FILE_VARIABLE)
MIN_KEY_LENGTH = 32

#: Of a sealed file: this, the id of the key, the HMAC, the SHA-256 of the message, and the message.
MAGIC = b"ARROYOM2"
_ID_BYTES = 8
_HEAD_BYTES = len(MAGIC) + _ID_BYTES + 2 * DIGEST_BYTES

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SealKey:
    """A secret that only those have who may write checkpoints."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> bytes:
        """Tells keys apart, and nothing of the secret."""
        return hmac.new(self.secret, b"arroyo seal key id", hashlib.sha256).digest()[:_ID_BYTES]

    def sign(self, path: str, payload: bytes) -> bytes:
        place = path.encode()
        signed = hmac.new(self.secret, MAGIC + self.id + len(place).to_bytes(4, "big") + place, hashlib.sha256)
        signed.update(payload)
        return signed.digest()


class Seals:
    """Writes and reads the metadata files of a job, with the keys that there are, or without any."""

    def __init__(self, keys: Sequence[SealKey] = ()) -> None:
        self._keys = tuple(keys)
        #: A sealed file that was read without a key, and its key's id.
        self._unverified: tuple[str, str] | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Seals:
        """With the keys of `ARROYO_SEAL_KEY` or `ARROYO_SEAL_KEY_FILE`; raises `SetupError` for what is not a key."""
        text, file = environment.get(KEY_VARIABLE, ""), environment.get(FILE_VARIABLE, "")
        if text and file:
            raise SetupError(f"{KEY_VARIABLE} and {FILE_VARIABLE} are both set: keys come from one of them")
        name = FILE_VARIABLE if file else KEY_VARIABLE
        if file:
            try:
                lines = Path(file).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                raise SetupError(f"{FILE_VARIABLE}: {file} cannot be read: {error}") from error
            text = " ".join(line for line in lines if not line.lstrip().startswith("#"))
        words = text.split()
        if (file or text) and not words:
            raise SetupError(f"{name} has no key")
        if any(len(word) < MIN_KEY_LENGTH for word in words):
            raise SetupError(
                f"{name}: a key has at least {MIN_KEY_LENGTH} characters, without blanks, such as what "
                "`openssl rand -hex 32` prints; blanks are between keys"
            )
        return cls([SealKey(word.encode()) for word in words])

    @property
    def is_on(self) -> bool:
        return bool(self._keys)

    def seal(self, message: Message, path: str) -> bytes:
        """The content of a metadata file at `path`, sealed where there is a key. Equal messages have equal content."""
        if not self._keys:
            return seal(message)
        key, payload = self._keys[0], message.SerializeToString(deterministic=True)
        return MAGIC + key.id + key.sign(path, payload) + hashlib.sha256(payload).digest() + payload

    def unseal(self, data: bytes, kind: type[MessageT], *, path: str, name: str) -> MessageT:
        """The message of the metadata file at `path`, which messages call `name`.

        Raises `SealError` where there is a key and the file has not its seal, `SealKeyError` if that is another key's,
        and `DamagedStateError`. Without a key a sealed file is read too, with a warning; see `check_may_write`.
        """
        if not is_sealed(data):
            message = unseal(data, kind, name=name)
            if self._keys:
                raise SealError(
                    f"{name} has no seal, and {KEY_VARIABLE} is set: it is not what this job wrote, or there was no "
                    "key then. `arroyo checkpoints seal` seals the checkpoints of a job that you trust"
                )
            return message
        id_, signature, digest, payload = _divide(data)
        if self._keys:
            self._verify(id_, signature, payload, path=path, name=name)
        elif self._unverified is None:
            self._unverified = (name, id_.hex())
            logger.warning("%s is sealed, and read without being verified: %s is not set", name, KEY_VARIABLE)
        return decode_payload(payload, digest, kind, name=name)

    def check_may_write(self) -> None:
        """Raise `SealKeyError` for who has no key, and has read a sealed file: what it wrote would be refused."""
        if self._unverified is not None:
            name, id_ = self._unverified
            raise SealKeyError(
                f"{name} is sealed with the key {id_}, and no key is given: set {KEY_VARIABLE} or {FILE_VARIABLE}, or "
                "take the seals off with `arroyo checkpoints seal --remove`"
            )

    def is_current(self, data: bytes) -> bool:
        """Whether a file that can be unsealed has the seal, or has none, that it would be written with now."""
        if not is_sealed(data):
            return not self._keys
        return bool(self._keys) and _divide(data)[0] == self._keys[0].id

    def _verify(self, id_: bytes, signature: bytes, payload: bytes, *, path: str, name: str) -> None:
        key = next((key for key in self._keys if key.id == id_), None)
        if key is None:
            known = ", ".join(key.id.hex() for key in self._keys)
            raise SealKeyError(
                f"{name} is sealed with the key {id_.hex()}, which is not among those that are given ({known}): add it "
                f"to {KEY_VARIABLE}, behind the one that seals"
            )
        if not hmac.compare_digest(signature, key.sign(path, payload)):
            raise SealError(
                f"{name} does not match its seal (key {id_.hex()}): it was changed, or belongs to another job, epoch "
                "or place"
            )


def is_sealed(data: bytes) -> bool:
    """Whether a metadata file has a seal, be it the right one or not."""
    return data[: len(MAGIC)] == MAGIC


def _divide(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """The key's id, the signature, the checksum and the message of a sealed file; of a cut one what there is."""
    start, head = len(MAGIC), _HEAD_BYTES
    signature = start + _ID_BYTES
    digest = signature + DIGEST_BYTES
    return data[start:signature], data[signature:digest], data[digest:head], data[head:]
