from pathlib import Path

import pytest

from arroyo_core.cli.main import main

ROOT = Path(__file__).parents[3]
JOIN = """\
CREATE TABLE auctions (WATERMARK FOR date_time) WITH (connector = 'nexmark', table = 'auction', events = 100);
CREATE TABLE bids (WATERMARK FOR date_time) WITH (connector = 'nexmark', table = 'bid', events = 100);

SELECT auctions.id, bids.price
FROM auctions
  JOIN bids ON auctions.id = bids.auction;
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        Path("q.sql").write_text(text)
        return "q.sql"

    return write


def test_state_without_a_limit_is_found_where_the_query_asks_for_it(script, capsys):
    assert main(["lint", script(JOIN)]) == 1
    found = capsys.readouterr().out
    assert found.startswith("q.sql:6:3: the state of 'query_join' (std.join) has no limit")
    assert "write SET updating_ttl = '1 day' before the query, or group by a window" in found


def test_a_ttl_limits_it(script, capsys):
    assert main(["lint", script("SET updating_ttl = '1 hour';\n" + JOIN)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("comment", ["-- arroyo: ignore[unbounded-state] few", "/* arroyo: ignore[unbounded-state] */"])
def test_a_comment_in_its_line_silences_it(script, capsys, comment):
    assert main(["lint", script(JOIN.replace("bids.auction;", f"bids.auction  {comment}\n;"))]) == 0, (
        capsys.readouterr().out
    )


def test_a_comment_that_silences_nothing_is_found(script, capsys):
    text = f"SET updating_ttl = '1 hour';\n{JOIN}-- arroyo: ignore[unbounded-state]\n"
    assert main(["lint", script(text)]) == 1
    assert "q.sql:8:4: there is no unbounded-state in this line [unused-ignore]" in capsys.readouterr().out


def test_a_text_that_looks_like_a_comment_is_none(script, capsys):
    text = JOIN.replace("bids.price", "'-- arroyo: ignore[unbounded-state]' AS price")
    assert main(["lint", script(text)]) == 1
    assert "unused-ignore" not in capsys.readouterr().out


def test_the_examples_are_clean(capsys):
    examples = sorted(str(path) for path in (ROOT / "examples").rglob("*.sql"))
    assert len(examples) >= 23
    assert main(["lint", *examples]) == 0, capsys.readouterr().out
