"""`arroyo doctor` against a real S3-protocol server."""

from __future__ import annotations

from arroyo_devtools.doctor.findings import Level
from arroyo_devtools.doctor.store import check_store

from arroyo_core.state import StorageProvider


def test_a_bucket_is_a_store_that_jobs_can_trust(s3_options):
    def open_store(url):
        return StorageProvider(url, options=s3_options)

    found = {finding.check: finding for finding in check_store("s3://state/doctor", open_store)}
    # How long a call takes says nothing where other tests keep the machine busy.
    latency = found.pop("store: latency")
    assert latency.level is not Level.FAILED
    assert {finding.level for finding in found.values()} == {Level.OK}, found
    assert found["store: put-if-absent, raced"].message == "of 8 writers at once exactly one wins (5 times)"
    assert "agrees" in found["store: clock"].message
    assert open_store("s3://state/doctor").list_root() == []


def test_a_bucket_that_is_not_there_is_told(s3_options):
    (found,) = check_store("s3://nosuchbucket/x", lambda url: StorageProvider(url, options=s3_options, attempts=1))
    assert found.level is Level.FAILED
    assert "check the URL, that its bucket is there, the credentials" in found.fix
