"""The rules that every source must keep; see `arroyo_testing.conformance`."""

from arroyo_template_source.fake_feed import FakeFeed
from arroyo_testing.conformance import Conformance, SourceCase

#: Runs as long as the tests do.
FEED = FakeFeed(
    {name: [f"{name}{number}" for number in range(count)] for name, count in {"a": 20, "b": 1, "c": 0, "d": 7}.items()}
)

conformance = Conformance(
    "arroyo_template_source.plugin",
    [SourceCase("template.feed", {"url": FEED.url, "follow": False, "page": 3})],
)
