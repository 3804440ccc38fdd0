"""A job that is stopped and goes on at another parallelism, again and again, gives what a whole run gives."""

from __future__ import annotations

import pytest

from .tally import Tally, published_epoch
from .terminal import run_until_epochs


@pytest.mark.timeout(900)
def test_two_to_three_to_one_to_four_subtasks_with_a_stop_each_is_exact(arroyo, tmp_path):
    job = Tally.of_epochs(24)
    path = job.write(tmp_path / "job")
    reached = 0
    for parallelism in (2, 3, 1):
        stopped = run_until_epochs(path, 3, "--parallelism", str(parallelism))
        assert stopped.code == 0, stopped.text
        assert "tally stopped:" in stopped.text
        assert ("going on after epoch" in stopped.text) is (reached > 0)
        before, reached = reached, published_epoch(path.parent)
        assert reached >= before + 3
    done = arroyo("run", path, "--master", "local[2]", "--parallelism", 4)
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {reached}" in done.stderr
    assert "tally finished:" in done.stderr
    print(job.assert_exact(path.parent, tmp_path / "expected"))
