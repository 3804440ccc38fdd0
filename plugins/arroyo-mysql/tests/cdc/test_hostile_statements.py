"""Statements in a binlog that are made to take long: each is read once, from its beginning to its end."""

from __future__ import annotations

import pytest
from arroyo_mysql.cdc.ddl import Effect, effect_of
from arroyo_mysql.names import TableName

OURS = TableName("shop", "orders")
#: So long that a reader which begins anew at each place would not end.
COUNT = 200_000


@pytest.mark.parametrize("text", ["/*", "'\\", '"\\', "`a", "--", "#", "/*!", "''\\'", " \t"])
@pytest.mark.timeout(120)
def test_what_has_no_end_is_read_once(text: str) -> None:
    assert effect_of(f"ALTER TABLE orders DROP PARTITION p {text * COUNT}", "shop", OURS, folds_case=False) in (
        Effect.PARTITION,
        None,
    )


@pytest.mark.parametrize(
    ("statement", "effect"),
    [
        ("TRUNCATE /* a * b */ orders", Effect.TRUNCATED),
        ("TRUNCATE /**/ orders /* no end", Effect.TRUNCATED),
        ("ALTER TABLE orders COMMENT 'it''s \\\\' DROP PARTITION p", Effect.PARTITION),
        ("ALTER TABLE orders DROP PARTITION p -- '", Effect.PARTITION),
        ("DROP TABLE `orders", None),
        ("DROP TABLE 'orders", None),
    ],
)
def test_what_is_quoted_is_read_as_before(statement: str, effect: Effect | None) -> None:
    assert effect_of(statement, "shop", OURS, folds_case=False) is effect
