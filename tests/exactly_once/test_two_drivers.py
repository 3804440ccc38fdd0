"""Two drivers run one job at once: one result, exact, and whoever lost the job is told so."""

from __future__ import annotations

import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from arroyo_core.state import FencedError

from .support.crash_rounds import ROOT, Laboratory, Order
from .support.laboratory import input_files
from .support.local_race import drive
from .support.local_rounds import read_tree
from .support.two_drivers import race
from .support.verdict import check_result, placeless, table_rows

SEED = int(os.environ.get("EXACTLY_ONCE_SEED", "1"))
ROUNDS = int(os.environ.get("EXACTLY_ONCE_RACES", "50"))
LOCAL_ROUNDS = int(os.environ.get("EXACTLY_ONCE_LOCAL_RACES", "10"))


#: More settings of the sink: rows as they come, and rows that are held until the end for larger files.
SINKS = {"files of each epoch": {}, "held rows": {"min_file_size": "1MiB", "max_hold": "1h"}}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_two_drivers_of_one_job_give_one_exact_result(sink):
    laboratory = Laboratory("crash-object", Order.PUBLISH_FIRST, sink=sink)
    outcomes: Counter[str] = Counter()
    for seed in range(SEED, SEED + ROUNDS):
        result, disk = race(laboratory, seed)
        for error in result.errors:
            assert error is None or isinstance(error, FencedError), str(result)
        for error in result.fenced:
            assert "owns the job now; this driver must stop" in str(error)
        outcomes[f"{sum(result.finished)} finished, {len(result.fenced)} fenced"] += 1
        if any(result.finished):
            # What a driver stages after its job was taken over and finished is hidden, and stays.
            check_result(disk.files, ROOT, laboratory.tables(disk), laboratory.truth, is_tidy=False)
        else:
            # Both lost the job to each other: whoever comes next finishes it.
            laboratory.recover(disk)
    print(f"\n{ROUNDS} races: {dict(outcomes)}; EXACTLY_ONCE_SEED=n EXACTLY_ONCE_RACES=1 repeats the one with seed n")
    assert outcomes["1 finished, 1 fenced"] > ROUNDS // 4


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_two_processes_on_local_files_give_one_exact_result(tmp_path, sink):
    whole = Laboratory("crash-object", Order.PUBLISH_FIRST, sink=sink).truth
    truth = replace(whole, tables=placeless(whole.tables))
    source = tmp_path / "in"
    source.mkdir()
    for name, data in input_files().items():
        (source / name).write_bytes(data)
    outcomes: Counter[str] = Counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for seed in range(SEED, SEED + LOCAL_ROUNDS):
            root = tmp_path / f"race-{seed}" / ROOT
            root.mkdir(parents=True)
            late = random.Random(seed).randrange(70)
            drivers = [
                pool.submit(drive, str(root), str(source), after_files=late * me, is_first=me == 0, sink=sink)
                for me in range(2)
            ]
            results = [driver.result() for driver in drivers]
            for is_finished, kind, text in results:
                assert is_finished or kind == "FencedError", f"seed {seed}: {kind}: {text}"
            outcomes[f"{sum(result[0] for result in results)} finished"] += 1
            if not any(result[0] for result in results):
                assert drive(str(root), str(source), after_files=0, is_first=False, sink=sink)[0]
            files = {f"{ROOT}/{name}": data for name, data in read_tree(root)[0].items()}
            tables = placeless(table_rows(f"{root}/state"))
            check_result(files, ROOT, tables, truth, is_tidy=False)
    print(f"\n{LOCAL_ROUNDS} races of two processes on local files: {dict(outcomes)}")
