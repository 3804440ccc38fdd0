"""Answers are compared as they should be: what is right is accepted, and every way to be wrong is found."""

from __future__ import annotations

import ast
from importlib.util import resolve_name
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from arroyo_nexmark.tables import TABLES

from ..modules import ROOT
from . import engine_pyarrow
from .answers import Answers, WrongAnswerError
from .dataset import prepare
from .queries import QUERIES
from .tasks import Task, Timing

HERE = Path(__file__).parent
EVENTS = 20_000


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def answers(root: Path):
    return Answers(prepare(root, EVENTS))


def pyarrow_answer(root: Path, folder: Path, query: str) -> Path:
    """The bare loop's answer."""
    dataset = prepare(root, EVENTS)
    answer = folder / "answer"
    task = Task(case=query, data=str(dataset.folder), answer=str(answer), scratch=str(folder))
    engine_pyarrow.run(task)
    return answer


@pytest.mark.parametrize("query", ["q0", "q1", "q2", "q5", "q7", "q8", "q11", "q12e", "q17", "q18"])
def test_the_bare_loop_answers_as_duckdb(root, answers, tmp_path: Path, query: str):
    answer = pyarrow_answer(root, tmp_path, query)
    found = answers.check(QUERIES[query], answer, Timing(job_s=1, epochs=1))
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
def test_wrong_rows_are_refused(root, answers, tmp_path: Path, damage, message: str):
    answer = pyarrow_answer(root, tmp_path, "q2")
    path = answer / "part-00000.parquet"
    pq.write_table(damage(pq.read_table(path)), path)
    with pytest.raises(WrongAnswerError, match=message):
        answers.check(QUERIES["q2"], answer, Timing(job_s=1, epochs=1))


def test_an_answer_without_files_is_refused(answers, tmp_path: Path):
    (tmp_path / "_staging").mkdir()
    (tmp_path / "_staging" / "part.parquet").write_bytes(b"not yet")
    with pytest.raises(WrongAnswerError, match="no files"):
        answers.check(QUERIES["q0"], tmp_path, Timing(job_s=1, epochs=1))


def test_rows_that_were_taken_back_do_not_count(root, answers, tmp_path: Path):
    answer = pyarrow_answer(root, tmp_path, "q2")
    path = answer / "part-00000.parquet"
    rows = pq.read_table(path)
    added = marked(rows, is_retract=False)
    extra = rows.slice(0, 1).set_column(1, "price", pa.array([7]))
    changes = [added, marked(extra, is_retract=False), marked(extra, is_retract=True)]
    pq.write_table(pa.concat_tables(changes), path)
    query = QUERIES["q2"]
    answers.check(query, answer, Timing(job_s=1, epochs=1))
    pq.write_table(pa.concat_tables(changes[:2]), path)
    with pytest.raises(WrongAnswerError):
        answers.check(query, answer, Timing(job_s=1, epochs=1))


def marked(rows: pa.Table, *, is_retract: bool) -> pa.Table:
    meta = pa.array([{"is_retract": is_retract}] * len(rows), pa.struct({"is_retract": pa.bool_()}))
    return rows.append_column("_updating_meta", meta)


def test_of_a_key_that_comes_again_the_last_row_counts(root, answers, tmp_path: Path):
    answer = pyarrow_answer(root, tmp_path, "q17")
    rows = pq.read_table(answer / "part-00000.parquet")
    earlier = rows.set_column(rows.schema.get_field_index("total_bids"), "total_bids", pa.array([0] * len(rows)))
    pq.write_table(earlier, answer / "part-00001.parquet")
    query = QUERIES["q17"]
    answers.check(query, answer, Timing(job_s=1, epochs=2, is_upsert=True))
    with pytest.raises(WrongAnswerError):
        answers.check(query, answer, Timing(job_s=1, epochs=2))


def test_open_windows_are_expected_unless_the_engine_keeps_them(answers):
    query = QUERIES["q12e"]
    assert 0 <= answers.right(query, is_closed_only=True).rows < answers.right(query).rows


def test_csv_has_the_same_rows_with_times_in_milliseconds(root, tmp_path: Path):
    dataset = prepare(root, EVENTS, format="csv")
    answers = Answers(dataset)
    names = [field.name for field in TABLES["bid"].schema]
    bids = pv.read_csv(dataset.folder / "bid" / "part-00.csv", read_options=pv.ReadOptions(column_names=names))
    assert len(bids) == dataset.rows("bid")
    pv.write_csv(
        bids.select(["auction", "price"]).filter(bids["auction"].to_numpy() % 123 == 0),
        tmp_path / "a.csv",
        pv.WriteOptions(include_header=False),
    )
    answers.check(QUERIES["q2"], tmp_path, Timing(job_s=1, epochs=1, answer="csv"))


def test_all_queries_of_the_examples_are_there():
    examples = {path.stem for path in (ROOT / "examples" / "nexmark").glob("q*.yaml")}
    assert examples | {"q12e"} == set(QUERIES)
    assert all(query.pipeline.exists() and query.sql for query in QUERIES.values())


@pytest.mark.parametrize("engine", sorted(path.stem for path in HERE.glob("engine_*.py") if "arroyo" not in path.name))
def test_engines_need_nothing_of_ours(engine: str):
    """They run in environments without our packages; packages above are imported, too."""
    seen: set[str] = set()
    pending = [f"{__package__}.{engine}", __package__, __package__.partition(".")[0]]
    while pending:
        name = pending.pop()
        path = ROOT.joinpath(*name.split("."))
        source = next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)
        if name not in seen and source is not None:
            pending += imported(source.read_text(), __package__)
        seen.add(name)
    assert f"{__package__}.tasks" in seen
    assert not [name for name in seen if name.startswith("arroyo")]


def imported(source: str, package: str) -> list[str]:
    """The names of all modules that the source of a module in a package imports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = resolve_name("." * node.level + (node.module or ""), package)
            # What is imported from a package may be a module of it.
            names += [found, *(f"{found}.{alias.name}" for alias in node.names)]
    return names
