"""Pipelines written in Python: what they declare, and what is said about mistakes in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from arroyo_core import InvalidPipelineError, Pipeline, PipelineError, Stream
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.builder.stream import declare_job
from arroyo_core.pipeline.document import YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.plugin import installed_plugins


def bids(**keys: object) -> Stream:
    return Stream.source("nexmark.source", events=1000, table="bid", **keys)


def build(*ends: Stream, **settings: object) -> Pipeline:
    return Pipeline.build(*ends, **{"name": "job", **settings})  # type: ignore[arg-type]


def ids(pipeline: Pipeline) -> list[str]:
    return [node.id for node in pipeline.plan.written_nodes()]


def mistakes(make: Callable[[], object]) -> list[PipelineError]:
    with pytest.raises(InvalidPipelineError) as raised:
        make()
    return list(raised.value.errors)


def line_of(text: str) -> int:
    """The line of this file that has a text, which stands here in halves."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def test_a_chain_of_methods_is_the_pipeline_that_a_file_has() -> None:
    built = build(
        bids(id="bids")
        .watermark("date_time", "1s")
        .tumbling_window("10s", keys=["auction"], count="n", max=("price", "top"))
        .sink("filesystem.sink", path="/out", format="parquet")
    )
    written = """
name: job
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 1000, table: bid}}
  - {id: watermark, operator: std.watermark, inputs: [bids], config: {column: date_time, max_lateness: 1s}}
  - id: tumbling_window
    operator: std.tumbling_window
    inputs: [watermark]
    config:
      size: 10s
      keys: [auction]
      aggregates: [{function: count, as: n}, {function: max, column: price, as: top}]
  - {id: filesystem_sink, operator: filesystem.sink, inputs: [tumbling_window], config: {path: /out, format: parquet}}
"""
    assert built.plan == plan_text(written, plugins=installed_plugins(), environment={})


def test_an_operator_may_be_named_by_its_plugin_by_its_word_or_as_text() -> None:
    ends = [
        bids().filter("price > 1").std.blackhole(),
        bids().std.filter("price > 1").blackhole(),
        bids().apply("std.filter", predicate="price > 1").apply("std.blackhole"),
        bids().apply("std.filter", "price > 1").sink("std.blackhole"),
    ]
    assert len({build(end).to_yaml() for end in ends}) == 1


def test_ids_are_those_of_operators_numbered_from_the_sources_on() -> None:
    source = bids()
    right = source.filter("price > 2")
    left = source.filter("price > 1")
    end = left.union(right).filter("price > 3").blackhole()
    assert ids(build(end)) == ["nexmark_source", "filter", "filter_2", "union", "filter_3", "blackhole"]


def test_ids_do_not_depend_on_the_order_in_which_a_program_declares() -> None:
    def declare(is_swapped: bool) -> Pipeline:
        source = bids()
        predicates = ["price > 1", "price > 2"]
        made = {text: source.filter(text) for text in (reversed(predicates) if is_swapped else predicates)}
        return build(made[predicates[0]].union(made[predicates[1]]).blackhole())

    assert declare(False).plan == declare(True).plan


def test_a_given_id_is_kept_and_not_given_again() -> None:
    end = bids(id="filter").filter("price > 1").filter("price > 2", id="filter_2").blackhole()
    assert ids(build(end)) == ["filter", "filter_3", "filter_2", "blackhole"]


def test_a_stream_that_two_read_is_one_node() -> None:
    source = bids()
    pipeline = build(source.filter("price > 1").blackhole(), source.blackhole())
    assert ids(pipeline) == ["nexmark_source", "filter", "blackhole", "blackhole_2"]


def test_side_outputs_are_read_by_name() -> None:
    windows = bids().watermark("date_time").tumbling_window("10s", count="n", late="side_output")
    pipeline = build(windows.blackhole(), windows.output("late").blackhole())
    assert [edge.output for edge in pipeline.plan.edges if edge.target == "blackhole_2"] == ["late"]


def test_joins_take_streams_first_and_short_forms_of_keys() -> None:
    people = Stream.source("nexmark.source", events=1000, table="person").watermark("date_time")
    auctions = Stream.source("nexmark.source", events=1000, table="auction").watermark("date_time")
    end = people.join(auctions, on={"id": "seller"}, prefixes={"right": "auction_"}).blackhole()
    text = build(end).to_yaml()
    assert "inputs: [watermark, watermark_2]" in text
    assert "on: [{left: id, right: seller}]" in text
    assert "on: [{left: id}]" in build(people.join(auctions, on="id").blackhole()).to_yaml()


def test_settings_of_the_job_are_those_of_a_file() -> None:
    plan = build(
        bids(parallelism=3).blackhole(),
        parallelism=2,
        checkpoint={"url": "/state", "interval": timedelta(seconds=5), "keep": 3},
        execution="auto",
    ).plan
    assert (plan.checkpoint.url, plan.checkpoint.interval_ms, plan.checkpoint.keep) == ("/state", 5000, 3)
    assert plan.execution == "auto"
    assert [node.parallelism for node in plan.nodes.values()] == [3, 2]
    assert build(bids().blackhole(), checkpoint=Path("/state")).plan.checkpoint.url == "/state"


def test_a_former_id_is_passed_on() -> None:
    assert build(bids(id="new", was="old").blackhole()).plan.nodes["new"].was == "old"


def test_a_pipeline_is_planned_again_for_another_parallelism() -> None:
    pipeline = build(bids().blackhole())
    assert pipeline.replan is not None
    assert pipeline.replan(4).width == 4


@pytest.mark.parametrize(
    ("value", "events"),
    [(1000, 1000), (np.int64(7), 7), (1e3, 1000), ("12", 12)],
)
def test_numbers_of_all_kinds_are_numbers(value: object, events: int) -> None:
    text = build(Stream.source("nexmark.source", events=value, table="bid").blackhole()).to_yaml()
    assert plan_text(text, plugins=installed_plugins(), environment={}) == (
        build(Stream.source("nexmark.source", events=events, table="bid").blackhole()).plan
    )


def test_every_mistake_is_found_at_the_line_of_its_argument() -> None:
    stream = bids()
    found = mistakes(
        lambda: build(
            stream.filter(
                predicat="price > 1",  # a wrong field
            )
            .apply("std.projct", keep=["a"])  # a wrong operator
            .tumbling_window(
                "10s",
                aggregates=[
                    {"function": "count", "az": "n"},  # a wrong key inside
                ],
            )
            .sink("filesystem.sink", path=3)  # a wrong type
        )
    )
    here = {(Path(str(each.at and each.at.file)).name, each.at and each.at.line): each for each in found}
    assert all(name == Path(__file__).name for name, _ in here)
    lines = {line: each for (_, line), each in here.items()}
    assert lines[line_of("# a wrong " + "field")].suggestion == "predicate"
    assert lines[line_of("# a wrong " + "operator")].suggestion == "std.project"
    assert "has no field 'az'" in lines[line_of("# a wrong " + "key inside")].message
    assert "must be a string" in lines[line_of("# a wrong " + "type")].message
    assert len(found) == 4


def test_wrong_columns_are_found_at_the_expression() -> None:
    (found,) = mistakes(lambda: build(bids().filter("pric > 1").blackhole()))
    assert found.at is not None
    assert found.at.line == line_of('filter("pric ' + '> 1")')


def test_an_unknown_method_says_which_there_are() -> None:
    with pytest.raises(AttributeError, match="did you mean 'filter'"):
        bids().filtr  # noqa: B018
    with pytest.raises(AttributeError, match=r"'std' has no operator 'tumbling'.*did you mean 'tumbling_window'"):
        bids().std.tumbling  # noqa: B018
    with pytest.raises(AttributeError, match="is an operator: call it"):
        bids().filter.predicate  # noqa: B018


def test_a_word_of_two_plugins_must_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    real = installed_plugins().registry.constructors
    both = SimpleNamespace(
        registry=SimpleNamespace(constructors={**real, "acme.filter": real["std.filter"]}),
        constructor=installed_plugins().constructor,
    )
    monkeypatch.setattr("arroyo_core.pipeline.builder.operators.installed_plugins", lambda: both)
    with pytest.raises(AttributeError, match=r"write stream\.acme\.filter or stream\.std\.filter"):
        bids().filter  # noqa: B018
    assert "acme" in dir(bids())


def test_too_many_arguments_and_doubled_ones_are_mistakes() -> None:
    with pytest.raises(PipelineError, match=r"test_streams\.py:\d+:\d+: std\.filter takes at most 2 .*, not 3"):
        bids().filter("a", "fail", "b")
    with pytest.raises(PipelineError, match="'predicate' twice"):
        bids().filter("a", predicate="b")
    with pytest.raises(PipelineError, match="stand before its other arguments"):
        bids().join(on="id", right=bids())


def test_what_is_not_a_stream_cannot_be_built() -> None:
    with pytest.raises(PipelineError, match="at least one stream"):
        Pipeline.build(name="x")
    with pytest.raises(PipelineError, match="not of str"):
        Pipeline.build("bids", name="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no rows before its pipeline runs"):
        list(bids())


def test_a_value_that_no_file_can_have_is_a_mistake() -> None:
    (found,) = mistakes(lambda: build(bids().key_by(keys={"auction"}).blackhole()))
    assert "cannot be a set, which has no order: give a list" in found.message
    (found,) = mistakes(lambda: build(bids().filter(object()).blackhole()))
    assert "'predicate' cannot be a object: allowed are text" in found.message


def test_variables_of_the_environment_are_read_and_not_shown() -> None:
    end = bids().sink("filesystem.sink", path="${OUT}/bids", format="parquet")
    pipeline = build(end, environment={"OUT": "/secret-place"})
    assert b"/secret-place/bids" in pipeline.plan.nodes["filesystem_sink"].config
    assert "secret-place" not in pipeline.to_yaml()
    assert plan_text(pipeline.to_yaml(), plugins=installed_plugins(), environment={"OUT": "/secret-place"}) == (
        pipeline.plan
    )
    (found,) = mistakes(lambda: build(end, environment={}))
    assert "variable OUT is not set" in found.message


def test_editors_see_signatures_and_documentation() -> None:
    method = bids().tumbling_window
    parameters = inspect.signature(method).parameters
    assert list(parameters)[:3] == ["size", "offset", "keys"]
    assert parameters["size"].default is inspect.Parameter.empty
    assert "fixed size" in (inspect.getdoc(method) or "")
    assert "size (required): How long" in (method.__doc__ or "")
    assert {"filter", "std", "tumbling_window", "apply"} <= set(dir(bids()))
    assert "as_" in inspect.signature(bids().unnest).parameters


def test_a_field_that_python_has_a_word_for_ends_in_an_underscore() -> None:
    source = bids().sql("SELECT auction, [price] AS prices FROM input", id="lists")
    assert "config: {column: prices, as: price}" in (build(source.unnest("prices", as_="price").blackhole()).to_yaml())


def test_a_function_of_the_program_is_called_by_its_name() -> None:
    def doubled(price: int) -> int:
        return 2 * price

    end = bids().project({"twice": "doubled(price)"}).blackhole()
    pipeline = Pipeline.udf(doubled).build(end, name="job")
    assert pipeline.plan.nodes["project"].output_schema.schema.names == ["twice"]
    assert [pin.name for pin in pipeline.plan.udfs] != []


def test_many_nodes_in_a_row_do_not_exhaust_the_stack() -> None:
    stream = bids()
    for _ in range(1200):
        stream = stream.apply("std.key_by", keys=["auction"])
    job = declare_job((stream.blackhole(),), {"name": "job"})
    assert list(job.nodes().values())[-2:] == ["key_by_1200", "blackhole"]
    assert isinstance(job.write(Environment({}), Mistakes()).root, YamlMap)
