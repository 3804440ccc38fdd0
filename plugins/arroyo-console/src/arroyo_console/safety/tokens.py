"""Tokens: where they come from, and which role one has."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arroyo_console.values import Role
from arroyo_core.errors import SetupError
from arroyo_core.local_folders import private_opener

#: The variable with the token of each role.
VARIABLES = {Role.WRITE: "ARROYO_CONSOLE_TOKEN", Role.READ: "ARROYO_CONSOLE_READ_TOKEN"}
#: Shorter ones can be guessed.
LEAST_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a server, as digests."""

    _digests: Mapping[Role, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, tokens: Mapping[Role, str]) -> Tokens:
        return cls({role: _digest(token) for role, token in tokens.items()})

    def __bool__(self) -> bool:
        return bool(self._digests)

    def role_of(self, token: str) -> Role | None:
        """None for a token that is none. Takes as long for one that is nearly right as for any other."""
        given, found = _digest(token), None
        for role, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = role
        return found


def read_tokens(
    environment: Mapping[str, str], *, file: Path | None, read_file: Path | None = None
) -> tuple[Tokens, Mapping[Role, Path]]:
    """The tokens of the environment and of files that are there; and which came from a file.

    Raises `SetupError` for a token that is too short, and for a file that others can read.
    """
    tokens: dict[Role, str] = {}
    used: dict[Role, Path] = {}
    for role, path in ((Role.WRITE, file), (Role.READ, read_file)):
        given = environment.get(VARIABLES[role], "").strip()
        if given:
            tokens[role] = _checked(given, VARIABLES[role])
        elif path is not None and path.exists():
            tokens[role] = _checked(_read(path), str(path))
            used[role] = path
    if len(set(tokens.values())) < len(tokens):
        raise SetupError("the token to read and the token to write must not be the same")
    return Tokens.of(tokens), used


def make_token(path: Path) -> None:
    """Write a new token into a file of this user alone; one that is there stays."""
    try:
        with open(path, "x", encoding="utf-8", opener=private_opener) as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    except FileExistsError:
        return


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or found.st_uid != os.getuid():
                raise SetupError(f"the token {path} must be a file of this user that others cannot read: chmod 600")
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the token {path} cannot be read: {error}") from error


def _checked(token: str, where: str) -> str:
    if len(token) < LEAST_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise SetupError(
            f"{where} is not a token: at least {LEAST_LENGTH} letters, digits and signs of ASCII, without spaces"
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
