"""User functions for arroyo-core."""

from arroyo_udf_template.functions import template_initials, template_share, template_span

__all__ = ["template_initials", "template_share", "template_span"]
