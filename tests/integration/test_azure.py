"""State in Azure's storage, held against Azurite: creating a file is exclusive there, and drivers fence each other.

Azurite is Microsoft's own emulator, a package of npm: `make azure` gets it and adlfs, and runs this. Elsewhere the
tests are skipped.
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

pytestmark = [
    pytest.mark.server,
    # adlfs makes containers as if they were there.
    pytest.mark.filterwarnings("ignore:Failed to fetch container properties"),
]

adlfs = pytest.importorskip("adlfs", reason="adlfs opens abfss://; make azure installs it")

#: Of every Azurite; it is in its documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

PIPELINE = """\
name: counted
checkpoint: {url: "abfss://acme/state", rows: 1000}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 5000}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [numbers]
    config: {keys: [subtask_index], ttl: 1h, aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [counts]}
"""


@pytest.fixture(scope="module")
def azure(tmp_path_factory):
    """A server with one container; the variables by which fsspec reaches it."""
    program = os.environ.get("ARROYO_AZURITE") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed: npm install azurite, or make azure")
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    command = [program, "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--disableTelemetry", "--skipApiVersionCheck", "--location", str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: is_listening(port), problem=(folder / "log").read_text)
        secret = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        secret += f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        adlfs.AzureBlobFileSystem(connection_string=secret).mkdir("acme")
        # fsspec reads variables when it is imported: these are for other processes.
        yield {f"FSSPEC_{name}_CONNECTION_STRING": secret for name in ("ABFS", "ABFSS")}
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("protocol", ["abfs", "abfss"])
def test_of_racing_writers_one_creates_a_file(azure, protocol):
    options = {"connection_string": azure["FSSPEC_ABFS_CONNECTION_STRING"]}
    storage = get_storage_provider(f"{protocol}://acme/{protocol}", options)
    # Nobody vouches for the driver: each new job shows it in a race.
    assert required_proof(storage) is Proof.RACE
    assert find_fault(storage, Proof.RACE) is None


def test_a_job_keeps_its_state_there_and_goes_on(azure, arroyo, tmp_path):
    (tmp_path / "counted.yaml").write_text(PIPELINE)
    done = arroyo("run", "counted.yaml", "--in-process", **azure)
    assert done.returncode == OK, done.stderr
    again = arroyo("run", "counted.yaml", "--in-process", **azure)
    assert "finished in an earlier run" in again.stderr, again.stderr
    verified = arroyo("checkpoints", "verify", "abfss://acme/state", **azure)
    assert verified.returncode == OK, verified.stdout + verified.stderr


def test_doctor_tries_it(azure, arroyo, tmp_path):
    (tmp_path / "counted.yaml").write_text(PIPELINE)
    done = arroyo("doctor", "counted.yaml", "--no-spark", **azure)
    assert re.search(r"ok +.*put-if-absent, raced", done.stdout), done.stdout + done.stderr
