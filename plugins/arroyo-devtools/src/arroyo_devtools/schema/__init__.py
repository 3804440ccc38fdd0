"""What the installed plugins say of themselves: for `arroyo docs`, the reference, and the JSON Schema for editors."""

from arroyo_devtools.schema.operator_docs import Kind, OperatorDoc, describe_operator, describe_operators
from arroyo_devtools.schema.pipeline_schema import pipeline_schema

__all__ = ["Kind", "OperatorDoc", "describe_operator", "describe_operators", "pipeline_schema"]
