"""Registers the functions. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_register(registry: Registry) -> None:
    from arroyo_udf_template.functions import template_initials, template_share, template_span

    for function in (template_initials, template_share, template_span):
        registry.add_udf(function)
