"""Hashes of texts that are the same on every platform, version and process."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.hashing import hash_columns
from arroyo_core.udf import udf
from arroyo_udf_text.columns import by_setting, per_distinct

#: 128 bits: that two of 10**15 values share a pseudonym has a chance of one in 10**9.
_PSEUDONYM_DIGITS = 32


@udf(arguments=[pa.string()], returns=pa.int64())
def text_hash64(text: pa.Array) -> pa.Array:
    """The 64-bit hash that keys are routed by, as a signed integer: for samples and buckets, not against attackers."""
    return pa.array(hash_columns([text]).view(np.int64), mask=_null_mask(text))


@udf(arguments=[pa.string()], returns=pa.string())
def text_sha256(text: pa.Array) -> pa.Array:
    """SHA-256 of the UTF-8 bytes, in hex. Does not hide what can be guessed: see `pseudonym`."""
    return per_distinct(text.cast(pa.binary()), lambda value: sha256(value).hexdigest(), pa.string())


@udf(arguments=[pa.string(), pa.string()], returns=pa.string())
def pseudonym(text: pa.Array, key: pa.Array) -> pa.Array:
    """A name for a person's value that only the holder of the key can make: 32 hex digits of HMAC-SHA256.

    The same text and key always give the same pseudonym, so that joins and counts still work.
    """
    return by_setting(key, text, _pseudonyms, pa.string())


def _pseudonyms(key: Any, texts: pa.Array) -> pa.Array:
    if not key:
        raise ValueError("the key of a pseudonym is empty: anybody could make it")
    secret = key.encode()
    return per_distinct(
        texts.cast(pa.binary()),
        lambda value: hmac.digest(secret, value, "sha256").hex()[:_PSEUDONYM_DIGITS],
        pa.string(),
    )


def _null_mask(column: pa.Array) -> Any:
    return pc.is_null(column).to_numpy(zero_copy_only=False) if column.null_count else None
