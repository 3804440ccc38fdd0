"""One in twenty calls to S3 fails, in eight ways: the job finishes, and its output and state are exact."""

from __future__ import annotations

import os
from dataclasses import replace

import fsspec
import pytest
import s3fs

from arroyo_core.state import storage

from .support.crash_rounds import Laboratory, Order
from .support.faulty_s3 import Fault, faulty_s3
from .support.laboratory import input_files, make_plugins, plan_job, run_job
from .support.verdict import check_result, placeless, table_rows

SEED = int(os.environ.get("EXACTLY_ONCE_SEED", "1"))
ROUNDS = int(os.environ.get("EXACTLY_ONCE_FAULT_ROUNDS", "1"))
#: How long a client waits for an answer; real ones wait longer, and tests cannot. On a busy machine a good answer takes
#: a while, too.
READ_TIMEOUT_S = 3


@pytest.fixture(scope="module")
def truth():
    whole = Laboratory("crash-object", Order.PUBLISH_FIRST).truth
    return replace(whole, tables=placeless(whole.tables))


@pytest.fixture(scope="module")
def server():
    with faulty_s3(silence_s=READ_TIMEOUT_S * 3) as (store, reached):
        yield store, reached


@pytest.fixture(params=["patient", "impatient"])
def s3(request, server, monkeypatch):
    """A fresh bucket with the input; s3fs as people set it up, and as one that never tries twice.

    What the test itself writes and reads goes by a client that waits as long as it takes.
    """
    store, reached = server
    store.fail(0, seed=0)
    fs = s3fs.S3FileSystem(**reached.storage_options, skip_instance_cache=True)
    bucket = f"lab-{os.urandom(6).hex()}"
    fs.mkdir(bucket)
    fs.pipe({f"{bucket}/lab/in/{name}": data for name, data in input_files().items()})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", reached.storage_options["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", reached.storage_options["secret"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", reached.url)
    settings = {"read_timeout": READ_TIMEOUT_S}
    if request.param == "impatient":
        settings["retries"] = {"max_attempts": 0}
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": settings})
    storage._provider.cache_clear()
    yield store, fs, bucket
    store.fail(0, seed=0)


def files_of(fs, bucket):
    fs.invalidate_cache()
    names = fs.find(bucket)
    return {name.removeprefix(f"{bucket}/"): fs.cat_file(name) for name in names}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_a_job_on_a_faulty_s3_is_exact(seed, s3, truth):
    store, fs, bucket = s3
    print(f"\nEXACTLY_ONCE_SEED={seed} EXACTLY_ONCE_FAULT_ROUNDS=1 repeats this round")
    plugins = make_plugins()
    plan = plan_job(plugins, f"s3://{bucket}/lab")
    store.fail(0.05, seed=seed)
    result = run_job(plan, plugins)
    faults, requests = store.faults.copy(), store.requests
    store.fail(0, seed=0)
    print(f"{sum(faults.values())} of {requests} requests failed: {dict(faults)}; {result.restarts} restarts")
    assert result.is_finished
    assert len(faults) > len(Fault) // 2
    assert sum(faults.values()) > 10
    check_result(files_of(fs, bucket), "lab", placeless(table_rows(f"s3://{bucket}/lab/state")), truth)
