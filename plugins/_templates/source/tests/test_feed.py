from http import HTTPStatus

import pytest
from arroyo_template_source.config_pb2 import FeedConfig
from arroyo_template_source.fake_feed import FakeFeed
from arroyo_template_source.plugin import FeedConstructor
from arroyo_testing import SourceHarness

from arroyo_core.api import Registry, with_defaults
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint


def construct(**config):
    return FeedConstructor().with_config(with_defaults(FeedConfig(**config)), Registry())


@pytest.fixture
def feed():
    with FakeFeed({"a": ["a0", "a1", "a2"], "b": ["b0"]}) as feed:
        yield feed


@pytest.fixture
def harness(feed):
    """Epochs of the source; a test moves its clock, and never waits."""
    harness = SourceHarness(lambda: construct(url=feed.url, page=2))
    yield harness
    harness.close()


def epoch(harness, **settings):
    """An epoch that ends when the source waits: for more lines, or for the feed to come back."""
    return harness.run(ends_at_wait=True, **settings)


def lines(run):
    return sorted(run.table["line"].to_pylist())


def test_each_line_comes_once_and_later_ones_later(harness, feed):
    assert lines(epoch(harness)) == ["a0", "a1", "a2", "b0"]
    assert lines(epoch(harness)) == []
    feed.partitions["a"].append("a3")
    assert lines(epoch(harness)) == ["a3"]


def test_a_partition_that_appears_later_is_read_from_its_beginning(harness, feed):
    epoch(harness)
    feed.partitions["c"] = ["c0", "c1", "c2"]
    assert lines(epoch(harness, parallelism=3)) == ["c0", "c1", "c2"]


def test_positions_move_with_their_partitions_to_another_parallelism(harness, feed):
    first = harness.run(rows=2)
    rest = epoch(harness, parallelism=3)
    assert sorted(lines(first) + lines(rest)) == ["a0", "a1", "a2", "b0"]


def test_a_source_that_does_not_follow_ends(feed):
    harness = SourceHarness(lambda: construct(url=feed.url, follow=False))
    assert lines(harness.run()) == ["a0", "a1", "a2", "b0"]
    assert harness.run().is_final
    harness.close()


def test_an_outage_is_waited_for_over_epochs_and_people_are_told(harness, feed):
    feed.status = HTTPStatus.SERVICE_UNAVAILABLE
    for _ in range(3):
        down = epoch(harness)
        assert lines(down) == []
        harness.clock.advance(60)
    assert (
        "answers 503 (Service Unavailable); failing since 2023-11-14T22:13:20Z (2m 0s), 3 attempts" in down.warnings[0]
    )
    assert down.counters == {"retries": 1}
    feed.status = HTTPStatus.OK
    back = epoch(harness)
    assert lines(back) == ["a0", "a1", "a2", "b0"]
    assert back.warnings == ["works again, after 3m 0s"]


def test_the_job_fails_when_the_feed_has_been_gone_for_too_long(harness, feed):
    feed.close()
    epoch(harness)
    harness.clock.advance(3600)
    with pytest.raises(OperatorError, match=r"cannot be reached: .* \(1h 0m\), 2 attempts: given up") as end:
        epoch(harness)
    assert retry_hint(end.value) is RetryHint.WITH_BACKOFF


def test_a_feed_that_asks_for_patience_is_not_asked_before(harness, feed):
    feed.status, feed.retry_after = HTTPStatus.TOO_MANY_REQUESTS, 30
    epoch(harness)
    asked = len(feed.requests)
    harness.clock.advance(29)
    epoch(harness)
    assert len(feed.requests) == asked
    feed.status = HTTPStatus.OK
    harness.clock.advance(1)
    assert len(lines(epoch(harness))) == 4


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_wrong_token_fails_at_once_and_is_not_shown(feed, token):
    feed.token = "right"
    source = construct(url=feed.url, token=token)
    harness = SourceHarness(lambda: source)
    with pytest.raises(OperatorError, match="answers 401") as refused:
        epoch(harness)
    assert retry_hint(refused.value) is RetryHint.NO_RETRY
    assert not token or token not in f"{refused.value} {source.display()}"
    harness.close()


def test_the_right_token_is_accepted(feed):
    feed.token = "right"
    harness = SourceHarness(lambda: construct(url=feed.url, token="right"))
    assert len(lines(epoch(harness))) == 4
    harness.close()


def test_a_url_of_another_kind_is_refused():
    with pytest.raises(ConfigError) as refused:
        construct(url="ftp://feed")
    assert refused.value.field == "url"
