"""What a scrape of a job's metrics gives."""

from urllib.request import urlopen

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.runtime.prometheus import JobMetrics, MetricsServer

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
