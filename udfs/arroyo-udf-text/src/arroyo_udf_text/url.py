"""The parts of URLs (RFC 3986). What a URL does not have, or what is not a URL, is null."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_text.columns import by_setting, per_distinct
from arroyo_udf_text.percent import decode, encoded_pattern
from arroyo_udf_text.url_split import SplitUrls

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_NO_DOMAIN = r"^[0-9.]*$|:"


@udf(arguments=[pa.string()], returns=pa.string())
def url_scheme(url: pa.Array) -> pa.Array:
    """'https' of 'https://example.com/'; in lower case."""
    urls = SplitUrls(url)
    return pc.ascii_lower(urls.texts(urls.scheme()))


@udf(arguments=[pa.string()], returns=pa.string())
def url_host(url: pa.Array) -> pa.Array:
    """The host in lower case, without user, password and port; an IPv6 address without its brackets."""
    return _hosts(url)


@udf(arguments=[pa.string()], returns=pa.int32())
def url_port(url: pa.Array) -> pa.Array:
    """The port that is written in the URL; null where there is none, or where it is beyond 65535."""
    urls = SplitUrls(url)
    digits = urls.texts(urls.host_and_port()[1])
    is_short = pc.less_equal(pc.binary_length(pc.ascii_ltrim(digits, "0")), 5)
    numbers = pc.if_else(is_short, digits, None).cast(pa.int32())
    return pc.if_else(pc.less_equal(numbers, 65535), numbers, None)


@udf(arguments=[pa.string()], returns=pa.string())
def url_path(url: pa.Array) -> pa.Array:
    """The path as it is written, encoded; empty where the URL ends with its host."""
    urls = SplitUrls(url)
    return urls.texts(urls.path())


@udf(arguments=[pa.string(), pa.string()], returns=pa.string())
def url_query_value(url: pa.Array, name: pa.Array) -> pa.Array:
    """The first value of this name in the query, decoded; empty for a name without '=', null where there is none."""
    urls = SplitUrls(url)
    return by_setting(name, urls.texts(urls.query()), _query_values, pa.string())


@udf(arguments=[pa.string()], returns=pa.string())
def url_registered_domain(url: pa.Array) -> pa.Array:
    """The part of the host that somebody registered, 'example.co.uk' of 'www.example.co.uk', by the Public Suffix List.

    Null for an IP address, and for a public suffix itself.
    """
    hosts = pc.utf8_rtrim(_hosts(url), ".")
    is_name = pc.invert(pc.match_substring_regex(hosts, _NO_DOMAIN))
    return per_distinct(pc.if_else(is_name, hosts, None), _suffixes().privatesuffix, pa.string())


@cache
def _suffixes() -> PublicSuffixList:
    """The list that the library brings along: nothing is fetched."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _hosts(urls: pa.Array) -> pa.Array:
    split = SplitUrls(urls)
    return pc.utf8_lower(split.texts(split.host_and_port()[0]))


def _query_values(name: Any, queries: pa.Array) -> pa.Array:
    pattern = rf"(?s)(?:^|&){encoded_pattern(name)}(?:=(?P<value>[^&]*))?(?:&|$)"
    return decode(pc.struct_field(pc.extract_regex(queries, pattern), "value"))
