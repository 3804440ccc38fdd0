"""A fork out of S3, and into it."""

from __future__ import annotations

import pytest

from arroyo_core.state import StorageProvider

from ...unit.state.support.state_fork import check_both_live_on, fork
from ...unit.state.support.state_life import Life


@pytest.mark.parametrize("is_local", [False, True])
def test_a_job_on_s3_is_forked_and_both_live_on(make_s3_storage, tmp_path, is_local):
    life = Life(make_s3_storage())
    life.run(6)
    target = StorageProvider(str(tmp_path)) if is_local else make_s3_storage()
    fork(life, target)
    check_both_live_on(life, Life(target), until=9)


def test_a_job_on_local_files_is_forked_into_s3(make_s3_storage, tmp_path):
    life = Life(StorageProvider(str(tmp_path)))
    life.run(6)
    target = make_s3_storage()
    fork(life, target)
    check_both_live_on(life, Life(target), until=9)
