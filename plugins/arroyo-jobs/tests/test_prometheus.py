"""What a scrape of a job's metrics gives."""

import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from arroyo_jobs.prometheus import PATIENCE, JobMetrics, MetricsServer

from arroyo_core.errors import SetupError
from arroyo_core.runtime.results import JobResult

NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 20}},
    {"id": "out", "operator": "test.sink", "inputs": ["in"]},
]


def scrape(port):
    text = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_a_scrape_tells_what_is_committed(lab):
    job = lab.job(NODES, checkpoint={"interval": "1h", "rows": 6}, listener=JobMetrics)
    with MetricsServer(job.listener, 0, host="127.0.0.1") as port:
        before = scrape(port)
        result = job.run()
        after = scrape(port)
    assert before['arroyo_source_rows_total{job_id="lab"}'] == "0.0"
    assert after['arroyo_source_rows_total{job_id="lab"}'] == "20.0"
    assert after['arroyo_epoch{job_id="lab"}'] == f"{result.epochs}.0"
    assert float(after['arroyo_state_bytes{job_id="lab"}']) > 0
    labels = 'job_id="lab",node_id="out",operator_name="test.sink",subtask_idx="0"'
    assert after[f"arroyo_worker_messages_recv_total{{{labels}}}"] == "20.0"


def test_a_port_that_is_taken_is_named(lab):
    metrics = JobMetrics(lab.plan(NODES))
    with MetricsServer(metrics, 0, host="127.0.0.1") as port, pytest.raises(SetupError, match=f"port {port}"):
        MetricsServer(metrics, port, host="127.0.0.1").__enter__()


def ask(port, path):
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_a_job_is_ready_when_it_has_committed_an_epoch(lab):
    job = lab.job(NODES, checkpoint={"interval": "1h", "rows": 6}, listener=JobMetrics)
    with MetricsServer(job.listener, 0) as port:
        assert ask(port, "/ready") == (503, "no epoch is committed yet\n")
        assert ask(port, "/live")[0] == 200
        result = job.run()
        assert ask(port, "/ready") == (200, f"epoch {result.epochs} is committed\n")


def test_a_driver_that_does_nothing_for_long_is_not_live(lab):
    metrics = JobMetrics(lab.plan(NODES, checkpoint={"timeout": "10s"}))
    with MetricsServer(metrics, 0) as port:
        assert ask(port, "/live") == (200, "the driver is starting\n")
        for quiet_s, code in ((10 * PATIENCE - 5, 200), (10 * PATIENCE, 503)):
            metrics.on_start(JobResult(job_id="lab", active_s=time.monotonic() - quiet_s))
            assert ask(port, "/live")[0] == code


def test_it_listens_on_loopback_unless_told_otherwise(lab):
    metrics = JobMetrics(lab.plan(NODES))
    for host, address in ((None, "127.0.0.1"), ("0.0.0.0", "0.0.0.0")):
        server = MetricsServer(metrics, 0, **({"host": host} if host else {}))
        with server:
            assert server._server.server_address[0] == address
    with pytest.raises(SetupError, match=r"of nowhere\.invalid: "):
        MetricsServer(metrics, 0, host="nowhere.invalid").__enter__()


def test_the_time_since_the_last_commit_is_that_since_the_start_before_there_is_one(lab):
    job = lab.job(NODES, checkpoint={"interval": "1h", "rows": 6}, listener=JobMetrics)
    with MetricsServer(job.listener, 0) as port:
        assert not [name for name in scrape(port) if name.startswith("arroyo_last_commit")]
        job.begin()
        job.listener.on_start(job.result)
        age = 'arroyo_last_commit_age_seconds{job_id="lab"}'
        job.result.committed_us -= 60_000_000
        assert float(scrape(port)[age]) >= 60
        while not job.is_ended:
            job.step()
        assert float(scrape(port)[age]) < 60
        assert scrape(port)['arroyo_generation{job_id="lab"}'] == "1.0"
