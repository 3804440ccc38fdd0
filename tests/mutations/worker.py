"""Plans mutants in this process, behind the walls of untrusted mode, and tells its parent what is not right."""

from __future__ import annotations

import json
import mmap
import os
import resource
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence

from arroyo_core.api.limits import UNTRUSTED_MEMORY
from arroyo_core.api.policy import PlanningPolicy
from arroyo_core.cli.confined.audit import refusals
from arroyo_core.cli.confined.walls import confine
from arroyo_core.cli.diagnostics import mistake_json, render_mistake
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.text import decode
from arroyo_core.plugin import installed_plugins

from .mutants import PIPELINES, ROOT, corpus, mutant
from .runs import POSITION

#: What a mistake says where an operator raised something else than a mistake.
FAULT = "this is a fault of"


def check(path: str, data: bytes) -> list[str]:
    """What is wrong with how a mutant was planned; nothing for a plan, and for mistakes of the pipeline."""
    refusals.clear()
    problems = list(_plan(path, data))
    problems += [f"not asked before: {what}" for what in refusals]
    used = _memory_bytes()
    if used > UNTRUSTED_MEMORY.value:
        problems.append(f"{used} bytes of memory")
    return problems


def _plan(path: str, data: bytes) -> Iterator[str]:
    mistakes = Mistakes()
    try:
        text = decode(data, file=path, mistakes=mistakes)
        mistakes.raise_if_any()
        assert text is not None
        with planning_time(path):
            plan_text(text, file=path, plugins=installed_plugins(), environment=os.environ)
    except InvalidPipelineError as invalid:
        for error in invalid.errors:
            shown = render_mistake(error)
            json.dumps(mistake_json(error))
            if FAULT in shown:
                yield "\n".join([error.message, *getattr(error, "__notes__", ())])
            if "root:x:0" in shown or "took too long" in shown:
                yield shown[:500]
    except BaseException as error:
        yield "".join(traceback.format_exception(error))


def work(seed: int, numbers: Sequence[int], position: mmap.mmap) -> None:
    """Say in `position` which number it is at; write a line of JSON for each that goes wrong, and one at the end."""
    warnings.simplefilter("ignore")
    installed_plugins()
    files = corpus()
    os.chdir(ROOT)
    # Imported before the walls stand, as lazy imports of operators read Python's own files only.
    confine(PlanningPolicy(is_untrusted=True, roots=(ROOT / "examples", ROOT / "tests" / "broken", PIPELINES)))
    for number in numbers:
        struct.pack_into(POSITION, position, 0, number)
        problems = check(*mutant(files, seed, number))
        if problems:
            print(json.dumps({"number": number, "problems": problems}), flush=True)
    print(json.dumps({"memory": _memory_bytes(), "cpu": time.process_time()}), flush=True)


def _memory_bytes() -> int:
    """The most that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    code = 1
    try:
        seed, first, stop, shared = map(int, sys.argv[1:])
        work(seed, range(first, stop), mmap.mmap(shared, 0))
        code = 0
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    # Not `sys.exit`: threads of libraries may wait for what is refused.
    os._exit(code)
