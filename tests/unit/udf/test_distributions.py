"""The functions of the distributions below udfs/, called by pipelines."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from arroyo_testing import run_in_process

from arroyo_core.errors import InvalidPipelineError, OperatorError

READMES = sorted((Path(__file__).parents[3] / "udfs").glob("arroyo-*/README.md"))
START = datetime(2024, 1, 1, tzinfo=UTC)
PLACES = [(52.52, 13.405), (48.8566, 2.3522), (-33.8688, 151.2093), (0.0, 180.0)]
#: Visits of two shops, one every ten seconds for twenty minutes.
VISITS = pa.table(
    {
        "time": pa.array([START + timedelta(seconds=10 * row) for row in range(120)], pa.timestamp("us", tz="UTC")),
        "number": pa.array(range(120), pa.int64()),
        "shop": ["north" if row % 3 else "south" for row in range(120)],
        "url": [f"https://www.shop.co.uk/item?id={row % 7}&q=caf%C3%A9" for row in range(120)],
        "visitor": [f"Visitor{row % 10}@Example.com" for row in range(120)],
        "amount": [float(row % 5 + 1) for row in range(120)],
        "lat": [PLACES[row % 4][0] for row in range(120)],
        "lon": [PLACES[row % 4][1] for row in range(120)],
    }
)
ROWS = VISITS.to_pylist()


@pytest.fixture
def run(tmp_path):
    """Runs nodes between a source of visits and a sink, and gives what the last of them sent."""
    source = tmp_path / "visits"
    source.mkdir()
    for start in range(0, len(ROWS), 40):
        pq.write_table(VISITS.slice(start, 40), source / f"{start:03}.parquet")

    def run(*nodes, parallelism=1, rows=None):
        out = tmp_path / f"out-{parallelism}-{rows}"
        pipeline = {
            "name": "visits",
            "checkpoint": {"url": f"{out}-state", **({"rows": rows} if rows else {})},
            "nodes": [
                {
                    "id": "files",
                    "operator": "filesystem.source",
                    "config": {"path": str(source), "format": "parquet", "event_time_field": "time"},
                },
                {"id": "visits", "operator": "std.watermark", "inputs": ["files"], "config": {"max_lateness": "60s"}},
                *nodes,
                {
                    "id": "out",
                    "operator": "filesystem.sink",
                    "inputs": [nodes[-1]["id"]],
                    "config": {"path": str(out), "format": "parquet"},
                },
            ],
        }
        path = tmp_path / "pipeline.yaml"
        path.write_text(json.dumps(pipeline))
        result = run_in_process(path, parallelism=parallelism)
        assert result.is_finished
        return pq.read_table(out).to_pylist(), result

    return run


def project(**expressions):
    config = {"keep": ["time", "number", "shop"], "expressions": expressions}
    return {"id": "projected", "operator": "std.project", "inputs": ["visits"], "config": config}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_text_functions_in_sql(run, parallelism):
    rows, _ = run(
        project(
            host="url_registered_domain(url)",
            item="CAST(url_query_value(url, 'id') AS BIGINT)",
            query="upper(url_query_value(url, 'q'))",
            visitor="mask_email(text_normalise(visitor))",
            pseudonym="pseudonym(visitor, 'secret')",
            tokens="text_tokens(visitor)",
        ),
        parallelism=parallelism,
    )
    assert len(rows) == 120
    for row in rows:
        visitor = f"visitor{row['number'] % 10}"
        assert (row["host"], row["item"], row["query"]) == ("shop.co.uk", row["number"] % 7, "CAFÉ")
        assert row["visitor"] == "v***@example.com"
        assert row["tokens"] == [visitor, "example", "com"]
    assert len({row["pseudonym"] for row in rows}) == 10


@pytest.mark.parametrize("parallelism", [1, 2])
def test_geo_functions_in_sql(run, parallelism):
    rows, _ = run(
        project(
            metres="geo_distance_m(lat, lon, 52.52, 13.405)",
            geohash="geo_hash(lat, lon, 5)",
            cell="geo_cell_text(geo_cell_parent(geo_cell(lat, lon, 9), 3))",
            is_german="geo_in_polygon(lat, lon, 'POLYGON ((6 47, 15 47, 15 55, 6 55, 6 47))')",
            middle="geo_hash_point(geo_hash(lat, lon, 5))['lat']",
        ),
        parallelism=parallelism,
    )
    berlin = [row for row in rows if row["number"] % 4 == 0]
    assert len(rows) == 120
    assert all(row["metres"] == 0 and row["geohash"] == "u33dc" and row["is_german"] for row in berlin)
    assert sum(row["is_german"] for row in rows) == len(berlin) == 30
    assert all(row["metres"] > 800_000 for row in rows if row["number"] % 4)
    assert len({row["cell"] for row in rows}) == 4
    assert all(abs(row["middle"] - PLACES[row["number"] % 4][0]) < 0.05 for row in rows)


AGGREGATES = [
    {"function": "mode", "column": "visitor", "as": "mode"},
    {"function": "hll_distinct", "column": "visitor", "as": "visitors"},
    {"function": "ewma", "columns": ["amount", "time", "half_life_s"], "as": "ewma"},
    {"function": "tdigest_quantile", "columns": ["amount", "rank"], "as": "greatest"},
    {"function": "top_values", "columns": ["visitor", "size"], "as": "top"},
    {"function": "reservoir_sample", "columns": ["visitor", "number", "size", "seed"], "as": "sample"},
    {"function": "weighted_mean", "columns": ["amount", "half_life_s"], "as": "mean"},
]


def window(name="std.tumbling_window", **settings):
    columns = project(visitor="visitor", amount="amount", half_life_s="60.0", rank="1.0", size="3", seed="42")
    config = {"keys": ["shop"], "aggregates": AGGREGATES, **settings}
    return columns, {"id": "windows", "operator": name, "inputs": ["projected"], "config": config}


def expected_windows():
    """The same by hand, over windows of ten minutes by shop."""
    for shop in ("north", "south"):
        for start in (0, 60):
            rows = [row for row in ROWS[start : start + 60] if row["shop"] == shop]
            counts = Counter(row["visitor"] for row in rows)
            ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            newest = max(row["time"] for row in rows)
            weights = [0.5 ** ((newest - row["time"]).total_seconds() / 60) for row in rows]
            amounts = [row["amount"] for row in rows]
            yield (
                (shop, rows[0]["time"] >= ROWS[60]["time"]),
                {
                    "mode": ranked[0][0],
                    "visitors": len(counts),
                    "ewma": sum(a * w for a, w in zip(amounts, weights, strict=True)) / sum(weights),
                    "greatest": max(amounts),
                    "top": [{"value": value, "count": count} for value, count in ranked[:3]],
                    "mean": sum(amounts) / len(amounts),
                },
            )


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("rows", [None, 40])
def test_aggregates_in_windows_at_any_parallelism_and_in_several_epochs(run, parallelism, rows):
    found, result = run(*window(size="10m"), parallelism=parallelism, rows=rows)
    assert rows is None or result.epochs > 1
    expected = dict(expected_windows())
    assert len(found) == len(expected) == 4
    for row in found:
        wanted = expected[row["shop"], row["window_start"] >= ROWS[60]["time"]]
        ewma = wanted.pop("ewma")
        assert {name: row[name] for name in wanted} == wanted
        assert row["ewma"] == pytest.approx(ewma)


def test_a_sample_is_the_same_at_any_parallelism_and_cut(run):
    samples = []
    for parallelism, rows in ((1, None), (2, 40)):
        found, _ = run(*window(size="10m"), parallelism=parallelism, rows=rows)
        samples.append(sorted((row["shop"], row["window_start"], row["sample"]) for row in found))
    assert samples[0] == samples[1]
    assert all(len(sample) == 3 for _, _, sample in samples[0])


def test_sliding_windows_merge_the_states_of_their_parts(run):
    found, _ = run(*window("std.sliding_window", size="10m", slide="5m"), parallelism=2)
    whole = {(row["shop"], row["window_start"]): row for row in found}
    for (shop, is_second), wanted in expected_windows():
        row = whole[shop, START + timedelta(minutes=10 * is_second)]
        assert row["mode"] == wanted["mode"]
        assert row["top"] == wanted["top"]
        assert row["ewma"] == pytest.approx(wanted["ewma"])


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_the_example_of_a_readme_runs(run, readme, monkeypatch):
    monkeypatch.setenv("PSEUDONYM_KEY", "secret")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    rows, _ = run(*yaml.safe_load(example))
    assert len(rows) in (4, len(ROWS))


def test_a_wrong_type_is_found_at_validation_with_its_place(run):
    with pytest.raises(InvalidPipelineError, match=r"pipeline\.yaml:1:\d+: .*geo_hash"):
        run(project(geohash="geo_hash(url, lon, 5)"))


def test_a_place_that_is_not_on_earth_names_the_function_and_the_value(run):
    with pytest.raises(OperatorError, match=r"(?s)UDF 'geo_cell'.*latitude 1\d\d\.\d+ is not from -90 to 90 degrees"):
        run(project(cell="geo_cell(lat + 100, lon, 9)"))
