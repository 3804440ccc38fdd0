"""Registers the text functions."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_register(registry: Registry) -> None:
    from arroyo_udf_text import hashing, masking, normalise, percent, url

    for function in (
        normalise.text_casefold,
        normalise.text_normalise,
        normalise.text_slug,
        normalise.text_squeeze,
        normalise.text_strip_accents,
        normalise.text_tokens,
        percent.url_decode,
        url.url_host,
        url.url_path,
        url.url_port,
        url.url_query_value,
        url.url_registered_domain,
        url.url_scheme,
        hashing.pseudonym,
        hashing.text_hash64,
        hashing.text_sha256,
        masking.card_is_valid,
        masking.mask_card,
        masking.mask_email,
        masking.mask_phone,
        masking.text_redact,
    ):
        registry.add_udf(function)
