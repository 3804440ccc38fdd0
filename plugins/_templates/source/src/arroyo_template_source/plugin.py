"""Registers the source. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_template_source.config_pb2 import FeedConfig


class FeedConstructor(OperatorConstructor[FeedConfig]):
    """Makes `template.feed`."""

    config_type = FeedConfig
    inputs = (0, 0)

    def with_config(self, config: FeedConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template_source.feed import Feed

        if not config.url.startswith(("http://", "https://")):
            raise ConfigError("not a URL of HTTP", field="url", value=config.url, allowed=["http://...", "https://..."])
        return ConstructedOperator.from_source(Feed(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.feed", FeedConstructor())
