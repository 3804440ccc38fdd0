"""One process that fuzzes one target: `python -m tests.fuzz.fuzzing TARGET SECONDS FOLDER`; `runs.py` starts it.

What is raised is written down and the search goes on; a crash, a hang or too much memory ends the process.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from .targets import CORPUS, TARGETS

#: An input that takes longer hangs.
HANG_SECONDS = 20
MEMORY_MIB = 1024
MAX_INPUT_BYTES = 8192
#: What a line of a finding begins with.
FINDING = "finding: "


def import_all(names: Sequence[str]) -> None:
    """Import packages with all their modules: what is imported later, as plugins do, is not instrumented."""
    for name in names:
        package = import_module(name)
        if hasattr(package, "__path__"):
            found = walk_packages(package.__path__, f"{name}.")
            import_all([each.name for each in found if not each.name.endswith("__main__")])


def main(name: str, seconds: int, folder: Path) -> None:
    import atheris

    target = TARGETS[name]
    with atheris.instrument_imports(include=list(target.instrumented)):
        run = target.load()
        import_all(target.instrumented)
    from .problems import find_problem

    # Warnings about what was forged would fill the disk.
    logging.disable(logging.CRITICAL)
    seen: set[str] = set()

    def try_input(data: bytes) -> None:
        problem = find_problem(run, data)
        if problem is not None and problem.id not in seen:
            seen.add(problem.id)
            path = folder / f"finding-{problem.id}"
            path.write_bytes(data)
            print(FINDING + json.dumps({"path": str(path), "what": str(problem)}), flush=True)

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-artifact_prefix={folder}/",
        # From the first on as long as those of the corpus.
        "-len_control=0",
        "-print_final_stats=1",
    ]
    # The first folder gets what the search finds, the second is only read.
    atheris.Setup([sys.argv[0], *options, str(corpus), str(CORPUS / name)], try_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
