"""Answers are compared as they should be: what is right is accepted, and every way to be wrong is found."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
EVENTS = 20_000


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """Modules of the benchmark by name: it is a folder that is run, not a package."""
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def answers(load, root: Path):
    return load("answers").Answers(load("dataset").prepare(root, EVENTS))


@pytest.fixture
def timing(load) -> type:
    return load("tasks").Timing


def pyarrow_answer(load, root: Path, folder: Path, query: str) -> Path:
    """The bare loop's answer."""
    dataset = load("dataset").prepare(root, EVENTS)
    answer = folder / "answer"
    task = load("tasks").Task(case=query, data=str(dataset.folder), answer=str(answer), scratch=str(folder))
    load("engine_pyarrow").run(task)
    return answer


@pytest.mark.parametrize("query", ["q0", "q1", "q2", "q5", "q7", "q8", "q11", "q12e", "q17", "q18"])
def test_the_bare_loop_answers_as_duckdb(load, root, answers, timing, tmp_path: Path, query: str):
    answer = pyarrow_answer(load, root, tmp_path, query)
    found = answers.check(load("queries").QUERIES[query], answer, timing(job_s=1, epochs=1))
    assert found.rows > 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.slice(1), "rows, not the"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "rows, not the"),
        (
            lambda table: pa.concat_tables([table.slice(2), table.slice(0, 1), table.slice(0, 1)]),
            "as many as are right, but not the same",
        ),
        (lambda table: table.set_column(1, "price", pa.array([0] * len(table))), "but not the same"),
        (lambda table: table.drop_columns("price"), "cannot be read"),
    ],
    ids=["a row less", "a row more", "one row twice and another not at all", "another value", "a column less"],
)
def test_wrong_rows_are_refused(load, root, answers, timing, tmp_path: Path, damage, message: str):
    answer = pyarrow_answer(load, root, tmp_path, "q2")
    path = answer / "part-00000.parquet"
    pq.write_table(damage(pq.read_table(path)), path)
    with pytest.raises(load("answers").WrongAnswerError, match=message):
        answers.check(load("queries").QUERIES["q2"], answer, timing(job_s=1, epochs=1))


def test_an_answer_without_files_is_refused(load, answers, timing, tmp_path: Path):
    (tmp_path / "_staging").mkdir()
    (tmp_path / "_staging" / "part.parquet").write_bytes(b"not yet")
    with pytest.raises(load("answers").WrongAnswerError, match="no files"):
        answers.check(load("queries").QUERIES["q0"], tmp_path, timing(job_s=1, epochs=1))


def test_rows_that_were_taken_back_do_not_count(load, root, answers, timing, tmp_path: Path):
    answer = pyarrow_answer(load, root, tmp_path, "q2")
    path = answer / "part-00000.parquet"
    rows = pq.read_table(path)
    added = marked(rows, is_retract=False)
    extra = rows.slice(0, 1).set_column(1, "price", pa.array([7]))
    changes = [added, marked(extra, is_retract=False), marked(extra, is_retract=True)]
    pq.write_table(pa.concat_tables(changes), path)
    query = load("queries").QUERIES["q2"]
    answers.check(query, answer, timing(job_s=1, epochs=1))
    pq.write_table(pa.concat_tables(changes[:2]), path)
    with pytest.raises(load("answers").WrongAnswerError):
        answers.check(query, answer, timing(job_s=1, epochs=1))


def marked(rows: pa.Table, *, is_retract: bool) -> pa.Table:
    meta = pa.array([{"is_retract": is_retract}] * len(rows), pa.struct({"is_retract": pa.bool_()}))
    return rows.append_column("_updating_meta", meta)


def test_of_a_key_that_comes_again_the_last_row_counts(load, root, answers, timing, tmp_path: Path):
    answer = pyarrow_answer(load, root, tmp_path, "q17")
    rows = pq.read_table(answer / "part-00000.parquet")
    earlier = rows.set_column(rows.schema.get_field_index("total_bids"), "total_bids", pa.array([0] * len(rows)))
    pq.write_table(earlier, answer / "part-00001.parquet")
    query = load("queries").QUERIES["q17"]
    answers.check(query, answer, timing(job_s=1, epochs=2, is_upsert=True))
    with pytest.raises(load("answers").WrongAnswerError):
        answers.check(query, answer, timing(job_s=1, epochs=2))


def test_open_windows_are_expected_unless_the_engine_keeps_them(load, answers):
    query = load("queries").QUERIES["q12e"]
    assert 0 <= answers.right(query, is_closed_only=True).rows < answers.right(query).rows


def test_csv_has_the_same_rows_with_times_in_milliseconds(load, root, timing, tmp_path: Path):
    dataset = load("dataset").prepare(root, EVENTS, format="csv")
    answers = load("answers").Answers(dataset)
    names = [field.name for field in load("answers").TABLES["bid"].schema]
    bids = pv.read_csv(dataset.folder / "bid" / "part-00.csv", read_options=pv.ReadOptions(column_names=names))
    assert len(bids) == dataset.rows("bid")
    pv.write_csv(
        bids.select(["auction", "price"]).filter(bids["auction"].to_numpy() % 123 == 0),
        tmp_path / "a.csv",
        pv.WriteOptions(include_header=False),
    )
    answers.check(load("queries").QUERIES["q2"], tmp_path, timing(job_s=1, epochs=1, answer="csv"))


def test_all_queries_of_the_examples_are_there(load):
    queries = load("queries")
    examples = {path.stem for path in (queries.ROOT / "examples" / "nexmark").glob("q*.yaml")}
    assert examples | {"q12e"} == set(queries.QUERIES)
    assert all(query.pipeline.exists() and query.sql for query in queries.QUERIES.values())


@pytest.mark.parametrize("script", sorted(path.name for path in HERE.glob("engine_*.py") if "arroyo" not in path.name))
def test_engines_need_nothing_of_ours(script: str):
    """They run in environments without our packages."""
    seen: set[str] = set()
    pending = [script.removesuffix(".py")]
    while pending:
        name = pending.pop()
        if name not in seen and (HERE / f"{name}.py").exists():
            pending += imported((HERE / f"{name}.py").read_text())
        seen.add(name)
    assert not [name for name in seen if name.startswith("arroyo")]


def imported(source: str) -> list[str]:
    """The first parts of the names of all modules that the source imports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return [name.partition(".")[0] for name in names]
