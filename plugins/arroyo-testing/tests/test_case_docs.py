"""The examples of `docs/test-a-pipeline.md` and of `examples` run, and do what is said of them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "test-a-pipeline.md"
EXAMPLES = ["examples/csv_to_parquet.yaml", "examples/union_of_streams.yaml", "examples/impulse_to_stdout.yaml"]


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """The YAML of the document, in a folder in which its pipeline finds its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    found = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "orders.yaml").write_text(found[0])
    return found


def without_times(text):
    return [re.sub(r"\([\d.]+ m?s\)", "", line).rstrip() for line in text.splitlines()]


def shown_after(command, number=0):
    """What the document shows below a command, without its indentation."""
    text = DOCUMENT.read_text()
    start = [match.end() for match in re.finditer(re.escape(f"    $ {command}\n"), text)][number]
    lines = []
    for line in text[start:].splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line[4:])
    return without_times("\n".join(lines).rstrip())


def test_the_tests_of_the_document_pass(blocks, run_tests):
    pipeline, *tests = blocks
    assert len(tests) == 2
    for number, text in enumerate(tests):
        Path("orders_test.yaml").write_text(text)
        code, out, err = run_tests("orders.yaml")
        assert code == 0, out + err
        if number == 0:
            assert without_times(out) == shown_after("arroyo test orders.yaml")
        Path("within.yaml").write_text(pipeline + text)
        assert run_tests("within.yaml")[0] == 0


def test_the_failure_in_the_document_looks_as_shown(blocks, run_tests):
    wrong = blocks[1].replace("total: 20.00", "total: 21.00")
    Path("orders_test.yaml").write_text(re.sub(r" *- \{country: DE, orders: .*\n", "", wrong))
    code, out, _ = run_tests("orders.yaml")
    assert code == 1
    assert without_times(out) == shown_after("arroyo test orders.yaml", 1)


def test_every_step_and_key_is_in_the_document():
    from arroyo_testing.cases.spec import CASE_KEYS, STEP_KEYS

    text = DOCUMENT.read_text()
    for key in CASE_KEYS:
        assert f"| `{key}` |" in text
    for step in STEP_KEYS:
        assert re.search(rf"^\| `{step}[`:]", text, re.MULTILINE), step


@pytest.mark.parametrize("example", [*EXAMPLES, "examples/tested"])
def test_the_tests_of_the_examples_pass(example, run_tests, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, out, err = run_tests(example)
    assert code == 0, out + err


def test_an_example_is_as_if_nothing_had_happened_after_every_crash(run_tests, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, out, err = run_tests("examples/csv_to_parquet.yaml", "--crash-all", "-k", "without an amount")
    assert code == 0, out + err
    assert re.search(r": \d+ crashes at \d+ storage calls: all as if nothing had happened", out)
