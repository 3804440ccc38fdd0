"""The guides of docs/ run as they are written, page by page; Spark is replaced by waves in this process."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from dataclasses import replace

import duckdb
import pytest

from arroyo_core.cli.main import main

from ..document_pages import ROOT, read_commands, read_steps

pytestmark = pytest.mark.once

PAGES = [
    "README.md",
    "docs/coming-from-arroyo.md",
    "docs/coming-from-flink-sql.md",
    "docs/coming-from-spark-sql.md",
    "docs/continuous-files.md",
    "docs/epochs-and-waves.md",
    "docs/exactly-once.md",
    "docs/execution.md",
    "docs/limits.md",
    "docs/many-pipelines.md",
    "docs/on-a-cluster.md",
    "docs/on-s3.md",
    "docs/on-spark-connect.md",
    "docs/outside-services.md",
    "docs/python.md",
    "docs/read-output.md",
    "docs/read-state.md",
    "docs/ship-functions.md",
    "docs/sql.md",
    "docs/untrusted.md",
    "docs/upgrade.md",
    "docs/write-a-database-connector.md",
    "docs/write-a-sink.md",
    "docs/write-a-source.md",
]

#: Blocks that no test runs, by page, and why. A new one is added here too, so that it is seen.
NOT_RUN = {
    "docs/execution.md": ["the job above has ended"],
    "README.md": ["it sets up an environment, and tests all of it"],
    "docs/on-spark-connect.md": ["it installs packages"],
    "docs/upgrade.md": ["the job above has ended"],
}

#: Pages with blocks that need a service, which `tests/integration/test_service_pages.py` runs.
WITH_SERVICES = ["docs/on-a-cluster.md", "docs/on-s3.md", "docs/on-spark-connect.md", "docs/read-output.md"]

#: Pages that another test runs, and where.
RUN_BY = {
    "docs/dataframes.md": "tests/integration/test_dataframes_page.py",
    "docs/delta.md": "plugins/arroyo-delta/tests/test_page.py",
    "docs/editors.md": "plugins/arroyo-devtools/tests/reference/test_editors.py",
    "docs/hooks.md": "tests/unit/plugin/test_hooks.py",
    "docs/iceberg.md": "plugins/arroyo-iceberg/tests/test_page.py",
    "docs/kafka.md": "plugins/arroyo-kafka/tests/test_page.py",
    "docs/lint.md": "plugins/arroyo-devtools/tests/test_lint_command.py",
    "docs/mysql.md": "plugins/arroyo-mysql/tests/sink/test_page.py",
    "docs/pipelines.md": "tests/unit/cli/test_parameters.py",
    "docs/postgres.md": "plugins/arroyo-postgres/tests/sink/test_page.py",
    "docs/postgres-cdc.md": "plugins/arroyo-postgres/tests/test_page.py",
    "docs/sealed.md": "plugins/arroyo-jobs/tests/test_seal_page.py",
    "docs/state-tables.md": "tests/unit/state/test_state_docs.py",
    "docs/test-a-pipeline.md": "plugins/arroyo-testing/tests/test_case_docs.py",
    "docs/trouble.md": "tests/unit/cli/test_trouble_docs.py",
    "docs/tutorial.md": "tests/integration/test_tutorial.py",
    "docs/udfs.md": "tests/unit/test_packaging_documents.py",
    "docs/write-a-format.md": "tests/unit/plugin/test_write_a_format.py",
    "docs/write-a-plugin.md": "tests/unit/test_packaging_documents.py",
}


#: What is not said of a job that runs in this process.
STARTING = ": starting Spark"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, in which modules that a page writes can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def run_command_line(line):
    """What the command prints, to stdout and stderr together."""
    name, *arguments = shlex.split(line)
    assert name == "arroyo", line
    if arguments[0] == "run":
        arguments.append("--in-process")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        main(arguments)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("own_logging")
def test_a_page_runs_as_it_is_written(page, folder):
    names = {"__name__": "page"}
    not_run = []
    for step in read_steps(ROOT / page):
        if step.reason is not None:
            not_run.append(step.reason)
        elif step.service is not None:
            assert page in WITH_SERVICES
        elif step.name is not None:
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        elif step.kind == "console":
            for command in read_commands(step.text):
                without_spark = replace(command, shown=tuple(line for line in command.shown if STARTING not in line))
                without_spark.check(run_command_line(command.line))
        elif step.kind == "python":
            exec(compile(step.text, page, "exec"), names)
        else:
            assert step.kind == "sql", f"{page}: a block of {step.kind} is neither a file nor run"
            duckdb.sql(step.text).fetchall()
    assert not_run == NOT_RUN.get(page, [])


@pytest.mark.parametrize("page", PAGES)
def test_no_command_is_hidden_from_the_tests(page):
    """Indented commands are not run: these pages show commands in `console` blocks only."""
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        assert not line.startswith(("    arroyo ", "    $ ")), line


def test_every_page_with_examples_is_run_by_a_test():
    pages = {str(path.relative_to(ROOT)): path for path in (ROOT / "docs").glob("*.md")}
    with_examples = {name for name, path in pages.items() if read_steps(path)}
    assert with_examples == {*PAGES, *RUN_BY} - {"README.md"}
    for page, test in RUN_BY.items():
        assert pages[page].name in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not name {page}"
