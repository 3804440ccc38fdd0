"""What the installed plugins say of themselves: for `arroyo docs`, the reference, and the JSON Schema for editors."""

from arroyo_core.graph.reference.case_schema import case_file_schema
from arroyo_core.graph.reference.operator_docs import Kind, OperatorDoc, describe_operator, describe_operators
from arroyo_core.graph.reference.pipeline_schema import pipeline_schema

__all__ = ["Kind", "OperatorDoc", "case_file_schema", "describe_operator", "describe_operators", "pipeline_schema"]
