"""Parts of URLs, beside `urllib`."""

import re
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import pyarrow as pa
import pytest
from arroyo_udf_text.percent import url_decode
from arroyo_udf_text.url import (
    url_host,
    url_path,
    url_port,
    url_query_value,
    url_registered_domain,
    url_scheme,
)
from hypothesis import given
from hypothesis import strategies as st

UNRESERVED = "abcXYZ019-._~"
ENCODED = st.sampled_from(
    ["%41", "%c3%a9", "%C3%A9", "%20", "+", "%2B", "%26", "%3D", "%", "%4", "%zz", "%25", "é", "%ff"]
)
WORDS = st.lists(st.one_of(st.text(UNRESERVED, min_size=1, max_size=4), ENCODED), max_size=4).map("".join)
HOSTS = st.one_of(
    st.from_regex(r"[a-zA-Z0-9]{1,8}(\.[a-zA-Z0-9]{1,5}){0,3}", fullmatch=True),
    st.sampled_from(["[::1]", "[2001:DB8::7]", "127.0.0.1", "BÜCHER.example", "xn--bcher-kva.example"]),
)
QUERIES = st.lists(st.tuples(WORDS, st.none() | WORDS), max_size=4).map(
    lambda pairs: "&".join(name if value is None else f"{name}={value}" for name, value in pairs)
)
URLS = st.builds(
    lambda scheme, user, host, port, path, query, fragment: f"{scheme}://{user}{host}{port}{path}{query}{fragment}",
    st.sampled_from(["http", "HTTPS", "s3", "git+ssh"]),
    st.sampled_from(["", "me@", "me:secret@", "a@b@"]),
    HOSTS,
    st.sampled_from(["", ":", ":80", ":65535"]),
    st.sampled_from(["", "/", "/a/b", "/a;b=1/é", "/x:y@z"]),
    st.just("") | QUERIES.map("?{}".format),
    st.sampled_from(["", "#", "#top?no=1"]),
)


#: RFC 3986, appendix B; and what the authority is made of.
URL = re.compile(r"(?s)(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?")
AUTHORITY = re.compile(r"(?s)(?:.*@)?(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::([0-9]*))?")


def run(function, *columns):
    return function(*(pa.array(column, pa.string()) for column in columns)).to_pylist()


@given(st.lists(URLS, min_size=1, max_size=5))
def test_parts_equal_those_of_the_standard_library(urls):
    parts = [urlsplit(url) for url in urls]
    assert run(url_scheme, urls) == [part.scheme for part in parts]
    assert run(url_host, urls) == [part.hostname for part in parts]
    assert run(url_port, urls) == [part.port for part in parts]
    assert run(url_path, urls) == [part.path for part in parts]


@given(st.lists(st.none() | st.text(st.sampled_from("//::??##[]@@ah1.é-")), max_size=8))
def test_parts_of_any_text_equal_those_of_the_grammar(texts):
    expected = []
    for text in texts:
        scheme, authority, path, _ = URL.fullmatch(text).groups() if text is not None else [None] * 4
        found = AUTHORITY.fullmatch(authority) if authority is not None else None
        address, name, port = found.groups() if found else [None] * 3
        expected.append((scheme and scheme.lower(), (address or name or "").lower() or None, port or None, path))
    ports = [None if port is None else f"{port}" for port in run(url_port, texts)]
    found = zip(run(url_scheme, texts), run(url_host, texts), ports, run(url_path, texts), strict=True)
    assert list(found) == [
        (a, b, c and (c.lstrip("0") or "0") if len(c or "") < 5 else None, d) for a, b, c, d in expected
    ]


@given(QUERIES, st.sampled_from(["a", "Xb", "é", " ", "+", "&", "=", "A", "%", "no", ".", "%41", "%4", "%z"]))
def test_query_values_equal_those_of_the_standard_library(query, name):
    pairs = parse_qsl(query, keep_blank_values=True)
    expected = next((value for found, value in pairs if found == name), None)
    assert run(url_query_value, [f"http://example.com/?{query}#a=1"], [name]) == [expected]


@given(st.lists(st.none() | WORDS | st.text(max_size=5), max_size=6))
def test_decoding_equals_that_of_the_standard_library(texts):
    assert run(url_decode, texts) == [None if text is None else unquote_plus(text) for text in texts]


@given(st.lists(st.none() | st.text(), max_size=5))
def test_any_text_has_parts_or_null_and_never_fails(texts):
    for function in (url_host, url_path, url_port, url_scheme, url_registered_domain, url_decode):
        assert len(run(function, texts)) == len(texts)


def test_a_name_of_a_query_may_differ_by_row():
    url = "https://example.com/?a=1&b=2&a=3&empty"
    assert run(url_query_value, [url, url, url, url, None], ["a", "b", "empty", None, "a"]) == [
        "1",
        "2",
        "",
        None,
        None,
    ]
    assert run(url_query_value, [], []) == []
    assert run(url_query_value, [url], [None]) == [None]


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("%41=1&%2541=2", "%41", "2"),
        ("%41=1&%2541=2", "A", "1"),
        ("%=1", "%", "1"),
        ("a%20b=1&a+b=2", "a b", "1"),
        ("a+b=1&a%2Bb=2", "a+b", "2"),
        ("x%3dy=1", "x=y", "1"),
        ("%C3%a9=1", "é", "1"),
        ("aa=1&ba=2", "a", None),
        ("a.c=1", "a.c", "1"),
        ("abc=1", "a.c", None),
    ],
)
def test_a_name_is_found_however_it_is_encoded(query, name, value):
    assert run(url_query_value, [f"https://example.com/?{query}"], [name]) == [value]


@pytest.mark.parametrize("port", ["65536", "99999999999999999999", "", "-1", "x"])
def test_what_is_no_port_is_null(port):
    assert run(url_port, [f"http://example.com:{port}/"]) == [None]


@pytest.mark.parametrize("authority", ["[::1", "::1]", "a]b", "[::1]x", "[a[b]]", "[::1]:8x", "a:1:2", "h:8x", "[]"])
def test_what_is_no_authority_has_no_host(authority):
    assert run(url_host, [f"http://{authority}/"]) == [None]


def test_a_port_may_have_leading_zeros():
    assert run(url_port, ["http://example.com:000080/"]) == [80]


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://www.example.co.uk/a", "example.co.uk"),
        ("https://me@shop.example.com.:443/", "example.com"),
        ("https://anna.github.io", "anna.github.io"),
        ("https://co.uk/", None),
        ("http://127.0.0.1/", None),
        ("http://[::1]/", None),
        ("https://www.münchen.de/", "münchen.de"),
        ("https://www.xn--mnchen-3ya.de/", "xn--mnchen-3ya.de"),
        ("mailto:anna@example.com", None),
        ("no url", None),
        (None, None),
    ],
)
def test_the_registered_domain_follows_the_public_suffix_list(url, domain):
    assert run(url_registered_domain, [url]) == [domain]


def test_text_without_a_scheme_has_no_host():
    assert run(url_host, ["example.com/a", "//example.com/a", "", "mailto:a@b.c"]) == [None, "example.com", None, None]
