"""State in Google's storage, held against fake-gcs-server: of racing writers one creates a file there.

fake-gcs-server is an emulator that checks `ifGenerationMatch`; `make google` gets it and gcsfs, and runs this.
Elsewhere the tests are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from arroyo_core.cli.exits import OK
from arroyo_core.state import get_storage_provider
from arroyo_core.state.exclusive import Proof, find_fault, required_proof

from ..waiting import wait_until
from .servers import free_port, is_listening

#: gcsfs would ask for the kind of a bucket by gRPC, which the emulator does not speak. It is read at the import.
PLAIN = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
os.environ |= PLAIN

gcsfs = pytest.importorskip("gcsfs", reason="gcsfs opens gs://; make google installs it")

pytestmark = [pytest.mark.server]

PIPELINE = """\
name: counted
checkpoint: {url: "gs://acme/state", rows: 1000}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 5000}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [numbers]
    config: {keys: [subtask_index], ttl: 1h, aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [counts]}
"""


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    """A server with one bucket; the variables by which fsspec reaches it."""
    program = os.environ.get("ARROYO_FAKE_GCS") or shutil.which("fake-gcs-server")
    if program is None:
        pytest.skip("fake-gcs-server is not installed: make google")
    folder, port = tmp_path_factory.mktemp("google"), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    command += ["-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: is_listening(port), problem=(folder / "log").read_text)
        gcsfs.GCSFileSystem(endpoint_url=url, token="anon", project="acme").mkdir("acme")
        # fsspec reads variables when it is imported: these are for other processes.
        yield {"FSSPEC_GS_ENDPOINT_URL": url, "FSSPEC_GS_TOKEN": "anon", **PLAIN}
    finally:
        process.terminate()
        process.wait()


def test_of_racing_writers_one_creates_a_file(google):
    options = {"endpoint_url": google["FSSPEC_GS_ENDPOINT_URL"], "token": google["FSSPEC_GS_TOKEN"]}
    storage = get_storage_provider("gs://acme/raced", options)
    # Nobody vouches for the driver: each new job shows it in a race.
    assert required_proof(storage) is Proof.RACE
    assert find_fault(storage, Proof.RACE) is None


def test_a_job_keeps_its_state_there_and_goes_on(google, arroyo, tmp_path):
    (tmp_path / "counted.yaml").write_text(PIPELINE)
    done = arroyo("run", "counted.yaml", "--in-process", **google)
    assert done.returncode == OK, done.stderr
    again = arroyo("run", "counted.yaml", "--in-process", **google)
    assert "finished in an earlier run" in again.stderr, again.stderr
    verified = arroyo("checkpoints", "verify", "gs://acme/state", **google)
    assert verified.returncode == OK, verified.stdout + verified.stderr


def test_doctor_tries_it(google, arroyo, tmp_path):
    (tmp_path / "counted.yaml").write_text(PIPELINE)
    done = arroyo("doctor", "counted.yaml", "--no-spark", **google)
    assert re.search(r"ok +.*put-if-absent, raced", done.stdout), done.stdout + done.stderr
