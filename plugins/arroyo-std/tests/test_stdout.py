from __future__ import annotations

import json

import pyarrow as pa
import pytest
from arroyo_std import stdout

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_core.runtime.context import RuntimeContext

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def rows(*ids):
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """As if no header had been printed."""
    monkeypatch.setattr(stdout, "_headed", set())


@pytest.fixture
def start(make, run):
    return lambda **config: run(lambda: make("std.stdout", **config), [ArroyoSchema(SCHEMA)])


def print_epoch(harness, *batches):
    harness.feed(*batches)
    harness.commit(harness.checkpoint())
    harness.restore()


def test_rows_are_printed_when_their_epoch_is_committed_and_not_before(start, capsys):
    harness = start().feed(rows(1), rows(2))
    data = harness.checkpoint()
    assert capsys.readouterr().out == ""
    harness.commit(data)
    assert capsys.readouterr().out == '{"id":1,"name":"n1"}\n{"id":2,"name":"n2"}\n'


def test_an_epoch_is_printed_once(start, capsys):
    harness = start()
    print_epoch(harness, rows(1))
    print_epoch(harness, rows(2))
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == [1, 2]


def test_subtasks_are_printed_in_their_order(start, capsys):
    harness = start()
    (staged,) = harness.feed(rows(1)).checkpoint().values()
    (other,) = start().feed(rows(2)).checkpoint().values()
    harness.commit({"out": {10: staged[0], 2: other[0]}})
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == [2, 1]


def test_an_epoch_without_rows_prints_nothing(start, capsys):
    harness = start(format="table")
    print_epoch(harness)
    print_epoch(harness, rows().slice(0, 0))
    assert capsys.readouterr() == ("", "")


def test_rows_past_the_limit_are_counted_beside_the_output(start, capsys):
    harness = start(limit=3).feed(rows(1, 2), rows(3, 4), rows(5))
    assert harness.counters["unprinted_rows"] == 2
    harness.commit(harness.checkpoint())
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == [1, 2, 3]
    assert captured.err == "operator: 2 more rows in epoch 1 were not printed\n"


def test_a_limit_of_zero_counts_only(start, capsys):
    harness = start(limit=0)
    print_epoch(harness, rows(1, 2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2 more rows" in captured.err


def test_the_limit_is_a_thousand_rows_unless_given(start, capsys):
    print_epoch(start(), rows(*range(1200)))
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1000
    assert "200 more rows" in captured.err


def test_csv_has_one_header_for_all_epochs(start, capsys):
    harness = start(format="csv")
    print_epoch(harness, rows(1))
    print_epoch(harness, rows(2))
    assert capsys.readouterr().out == "id,name\n1,n1\n2,n2\n"


def test_a_table_has_its_columns_aligned(start, capsys):
    print_epoch(start(format="table"), rows(1, 100))
    assert capsys.readouterr().out == "id  | name\n----+-----\n  1 | n1\n100 | n100\n"


def test_it_emits_nothing_and_commits(start):
    harness = start().feed(rows(1))
    harness.checkpoint()
    assert harness.events == []
    assert harness.operator.is_committing()


@pytest.fixture
def shown(monkeypatch):
    """As in live workers, which can show text before the commit: the texts, with their headings."""
    texts = []

    def show(ctx, text, *, heading=""):
        texts.append((heading, text))
        return True

    monkeypatch.setattr(RuntimeContext, "show", show)
    return texts


def test_rows_are_shown_at_once_and_not_again_at_the_commit(start, shown, capsys):
    harness = start(at_once=True).feed(rows(1), rows(2))
    assert shown == [("", '{"id":1,"name":"n1"}\n'), ("", '{"id":2,"name":"n2"}\n')]
    harness.commit(harness.checkpoint())
    assert capsys.readouterr() == ("", "")


def test_without_at_once_nothing_is_shown_before_the_commit(start, shown):
    start().feed(rows(1))
    assert shown == []


def test_csv_at_once_gives_its_header_apart(start, shown):
    start(at_once=True, format="csv").feed(rows(1), rows(2))
    assert shown == [("id,name\n", "1,n1\n"), ("id,name\n", "2,n2\n")]


def test_the_limit_counts_what_was_shown(start, shown, capsys):
    harness = start(at_once=True, limit=3).feed(rows(1, 2), rows(3, 4), rows(5))
    assert [text for _, text in shown] == ['{"id":1,"name":"n1"}\n{"id":2,"name":"n2"}\n', '{"id":3,"name":"n3"}\n']
    harness.commit(harness.checkpoint())
    assert capsys.readouterr() == ("", "operator: 2 more rows in epoch 1 were not printed\n")


def test_at_once_prints_at_the_commit_where_nothing_can_be_shown_before(start, capsys):
    harness = start(at_once=True).feed(rows(1))
    assert capsys.readouterr().out == ""
    harness.commit(harness.checkpoint())
    assert capsys.readouterr().out == '{"id":1,"name":"n1"}\n'


def test_a_table_cannot_be_printed_at_once(start):
    with pytest.raises(ConfigError, match="at_once is for json and csv"):
        start(at_once=True, format="table")
