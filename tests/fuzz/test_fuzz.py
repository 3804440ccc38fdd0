"""The corpus, with an input for each finding of the past, and some mutants of it: nothing but errors of ours.

`make fuzz` searches by coverage for an hour each; this needs no atheris. `FUZZ_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.problems import find_problem
from tests.fuzz.runs import Finding, Report, fuzz, is_excessive
from tests.fuzz.targets import CORPUS, TARGETS
from tests.mutations.mutants import mutate_bytes

#: The same in CI every time, as Hypothesis has it.
SEED = int(
    os.environ.get("FUZZ_SEED") or (362_722 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000))
)
#: For the mutants of each target.
MUTATION_SECONDS = 0.6
MOST_MUTANTS = 300
MOST_CHANGES = 4
#: All of it is in the repository.
MOST_CORPUS_BYTES = 64 * 1024

INPUTS = [(name, path) for name, target in TARGETS.items() for path in target.inputs()]


@pytest.mark.parametrize(("name", "path"), INPUTS, ids=[f"{name}-{path.name}" for name, path in INPUTS])
def test_an_input_of_the_corpus_does_no_harm(name, path):
    problem = find_problem(TARGETS[name].load(), path.read_bytes())
    assert problem is None, problem.text


@pytest.mark.parametrize("name", TARGETS)
def test_mutants_of_the_corpus_do_no_harm(name):
    run = TARGETS[name].load()
    files = [(path.name, path.read_bytes()) for path in TARGETS[name].inputs()]
    chance = random.Random(f"{SEED} {name}")
    end = time.monotonic() + MUTATION_SECONDS
    for number in range(MOST_MUTANTS):
        _, data = chance.choice(files)
        for _ in range(chance.randint(1, MOST_CHANGES)):
            data = mutate_bytes(data, files, chance)
        problem = find_problem(run, data)
        assert problem is None, f"FUZZ_SEED={SEED}, mutant {number} of {name}, {data!r}:\n{problem.text}"
        if time.monotonic() > end:
            break


@pytest.mark.parametrize("error", [KeyError, RecursionError, MemoryError, AssertionError, SystemExit])
def test_an_error_that_is_not_ours_is_a_problem(error):
    def run(data):
        raise error("bad")

    problem = find_problem(run, b"")
    assert problem is not None
    assert problem.kind == error.__name__
    assert problem.place.startswith("tests/fuzz/test_fuzz.py:")
    assert "bad" in problem.text


def test_the_corpus_has_inputs_for_each_target_and_stays_small():
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(len(target.inputs()) > 3 for target in TARGETS.values())
    assert sum(path.stat().st_size for _, path in INPUTS) < MOST_CORPUS_BYTES


def test_a_finding_is_repeated_by_its_command(tmp_path, monkeypatch, capsys):
    path = tmp_path / "finding"
    path.write_bytes(b"name: x\n")
    monkeypatch.setattr(sys, "argv", ["tests.fuzz", "yaml", "--input", str(path)])
    assert main() == 0
    assert capsys.readouterr().out == "nothing is wrong\n"
    monkeypatch.setattr("tests.fuzz.yaml_files.format_text", lambda text, *, file: {}[text])
    assert main() == 1
    assert "KeyError: 'name: x" in capsys.readouterr().out


def test_what_a_fuzzing_process_says_becomes_findings_and_a_report(tmp_path, monkeypatch):
    """With a process that says what atheris would: a finding, and a crash; then one that needs much memory, for which
    its input is not to blame; the third one comes to its end.
    """
    script = tmp_path / "says.py"
    script.write_text(SAYS)
    begin = subprocess.Popen

    def begin_script(command, **options):
        return begin([sys.executable, str(script), *command[3:]], **options)

    monkeypatch.setattr("tests.fuzz.runs.subprocess.Popen", begin_script)
    monkeypatch.setattr("tests.fuzz.runs.is_excessive", lambda target, path: False)
    *findings, report = fuzz(TARGETS["yaml"], 600, out=tmp_path)
    assert [finding.what for finding in findings] == ["KeyError in x.py:1", "a crash: crash-0"]
    assert isinstance(findings[0], Finding)
    assert findings[0].repeat == f"python -m tests.fuzz yaml --input {tmp_path}/yaml/finding-0"
    assert isinstance(report, Report)
    assert (report.coverage, report.inputs, report.memory_mib) == (12, 3, 77)
    assert report.executions == 164
    assert "2 findings" in str(report)


def test_an_input_is_to_blame_for_what_it_takes_alone(tmp_path):
    path = tmp_path / "oom-0"
    path.write_bytes(b"name: x\n")
    assert is_excessive(TARGETS["yaml"], path, mebibytes=1)
    assert is_excessive(TARGETS["yaml"], path, seconds=0)
    assert not is_excessive(TARGETS["yaml"], path, seconds=600)


SAYS = """\
import json, pathlib, sys
target, seconds, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
crash = folder / "crash-0"
if not crash.exists():
    crash.touch()
    print("finding: " + json.dumps({"path": str(folder / "finding-0"), "what": "KeyError in x.py:1"}), flush=True)
    print("#64\\tNEW    cov: 12 ft: 20 corp: 3/40b lim: 4", file=sys.stderr)
    sys.exit(77)
if not (folder / "oom-0").exists():
    (folder / "oom-0").touch()
    sys.exit(71)
print("stat::number_of_executed_units: 100", file=sys.stderr)
print("stat::peak_rss_mb:              77", file=sys.stderr)
"""
