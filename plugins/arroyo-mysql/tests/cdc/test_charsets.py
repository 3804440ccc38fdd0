"""Character sets: every character that the server has is read as the server reads it, or refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from arroyo_mysql.cdc.charsets import _CODECS, decoder_of, is_readable

from arroyo_core.errors import ConfigError
from tests.mysql_server import MysqlServer

from .support import Table

WIDE = {"big5", "gbk", "gb2312", "euckr", "sjis", "cp932", "ujis"}


def test_characters_that_are_not_those_of_the_codec_stand_among_others() -> None:
    decode = decoder_of("sjis")
    assert decode is not None
    assert decode("日".encode("shift_jis") + b"\x81\x5f" + "本".encode("shift_jis") + b"\\") == "日\\本\\"
    # The last byte of one and the first of the next look like it.
    assert decode(b"\x83\x81\x5f") == "メ_"
    latin1 = decoder_of("latin1")
    assert latin1 is not None
    assert latin1(b"\x80\x81\xe9") == "€\x81é"
    with pytest.raises(UnicodeDecodeError):
        decode(b"\x81\x5f\x81")


def test_character_sets_that_are_not_the_same_in_python_are_not_read() -> None:
    assert [decoder_of(name) for name in ("eucjpms", "gb18030", "macroman")] == [None] * 3
    assert not is_readable("eucjpms")
    assert is_readable("utf8mb4")


@pytest.mark.server
@pytest.mark.parametrize("charset", sorted(name for name in _CODECS if not name.startswith(("utf", "ucs"))))
def test_every_character_is_what_the_server_says_or_an_error(server: MysqlServer, charset: str) -> None:
    decode = decoder_of(charset)
    assert decode is not None
    ranges = [(1, 0, 0xFF)]
    if charset in WIDE:
        ranges.append((2, 0x8140, 0xFEFE))
    compared = wrong = 0
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        for width, first, last in ranges:
            raw = f"convert(unhex(lpad(hex(seq), {2 * width}, '0')) using {charset})"
            cursor.execute(f"select seq, convert({raw} using utf8mb4) from seq_{first}_to_{last}")
            for number, text in cursor.fetchall():
                # Bytes that are no character of it become question marks, or two characters.
                if not text or len(text) != 1 or (text == "?" and number != ord("?")):
                    continue
                compared += 1
                try:
                    wrong += decode(number.to_bytes(width, "big")) != text
                except UnicodeDecodeError:
                    continue
    assert compared > 200
    assert wrong == 0


@pytest.mark.server
@pytest.mark.parametrize("charset", ["eucjpms", "macroman"])
def test_a_column_of_a_character_set_that_is_not_read_is_refused_with_its_name(
    table: Callable[..., Table], charset: str
) -> None:
    made = table(f"id int primary key, name varchar(9) character set {charset}, other text")
    with pytest.raises(ConfigError, match=f"'name' has the character set '{charset}'.*convert it to utf8mb4"):
        made.source()
    made.source(columns=["other"])
    made.source(snapshot="only")
