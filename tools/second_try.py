"""Runs once more, alone, the few tests that failed beside others: `tools/test.sh` calls it.

    python tools/second_try.py build/reports

With as many environments side by side as `make test` has, a test can fail because a machine was busy. One that passes
when nothing else runs is *unstable*: the summary names it with how it failed, and it does not fail the run. It is a
fault nevertheless, of the test or of the code. What fails again, and what pytest has not reported as a failed test
(lint, a crash, an installation), fails the run.

Reads what tox and pytest have left: `tox.json` and the JUnit files in the folder, and pytest's list of failed tests in
each environment. Moves the JUnit files of what is tried again to `first/`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from summary import FIRST, read_report

#: More are not an accident.
MOST = 12


def failed_environments(result: Path, matrix: Sequence[str]) -> list[str]:
    """The environments of the matrix that tox does not call a success."""
    environments = json.loads(result.read_text())["testenvs"]
    return [name for name in matrix if not environments.get(name, {}).get("result", {}).get("success")]


def ended_early(result: Path) -> list[str]:
    """The environments in which pytest did not run all tests: interrupted, or ended by a fault of its own."""
    environments = json.loads(result.read_text())["testenvs"]
    return [
        name
        for name, said in environments.items()
        if any(command["retcode"] not in (0, 1) for command in said.get("test", ()))
    ]


def failed_tests(environment: str) -> list[str]:
    """The ids of the tests that failed in an environment, as pytest wrote them down there."""
    path = Path(".tox", environment, ".pytest_cache", "v", "cache", "lastfailed")
    return sorted(json.loads(path.read_text())) if path.exists() else []


def reports_of(environment: str, folder: Path) -> list[Path]:
    """The reports of the suites of an environment: `py311-integration.xml`, `py311-integration.sparks.xml`."""
    return sorted(folder.glob(f"{environment}.*xml"))


def objection(failed: dict[str, list[str]], folder: Path) -> str | None:
    """Why there is no second try, or nothing."""
    if early := ended_early(folder / "tox.json"):
        return f"not all tests were run in {', '.join(early)}"
    for environment, tests in failed.items():
        reported = sum(read_report(path).failed for path in reports_of(environment, folder))
        # A file that cannot be collected keeps the tests of all others from being run.
        is_whole = all("::" in test for test in tests)
        if not tests or reported != len(tests) or not is_whole:
            return f"{environment} failed with more than tests that pytest has reported"
    count = sum(map(len, failed.values()))
    return f"{count} tests failed, more than {MOST}" if count > MOST else None


def try_again(environment: str, tests: list[str], folder: Path) -> bool:
    """Run the tests in their environment as it is; the JUnit file of this try is beside that of the first."""
    print(f"once more, alone: {environment}: {', '.join(tests)}", flush=True)
    first = folder / FIRST
    first.mkdir(exist_ok=True)
    for path in reports_of(environment, folder):
        path.rename(first / path.name)
    pytest = ["pytest", f"--junit-xml={folder / environment}.xml", "-ra", "--timeout=300", *tests]
    command = [f"{Path(sys.executable).parent}/tox", "exec", "--colored", "no", "-e", environment, "--", *pytest]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0


def main(folder: Path, matrix: Sequence[str]) -> int:
    failed = {
        environment: failed_tests(environment) for environment in failed_environments(folder / "tox.json", matrix)
    }
    if not failed:
        print("tox failed, and names no environment that did", file=sys.stderr)
        return 1
    if reason := objection(failed, folder):
        print(f"no second try: {reason}", file=sys.stderr)
        return 1
    passed = [try_again(name, tests, folder) for name, tests in failed.items()]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    # It is beside the folder of the tools.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from toxfile import environment_names

    sys.exit(main(Path(sys.argv[1]), environment_names()))
