"""JSON Schema for the `tests` of a pipeline, as `arroyo_testing.cases.spec` reads them."""

from __future__ import annotations

from arroyo_core.pipeline import scalar_schemas as scalars
from arroyo_core.pipeline.scalar_schemas import DIALECT, Schema, nullable
from arroyo_testing.cases.spec import MAX_PARALLELISM, CrashMoment

_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
#: Steps that may be written as a bare word.
_BARE = ("checkpoint", "crash", "restart")


def case_file_schema() -> Schema:
    """The schema of a file of tests beside a pipeline."""
    pipeline = {
        **scalars.text(),
        "description": "The pipeline that is tested, from this file's folder. Default: NAME.yaml for NAME_test.yaml.",
    }
    return {
        "$schema": DIALECT,
        "title": "arroyo tests",
        "description": "Tests of a pipeline, for `arroyo test`.",
        "type": "object",
        "required": ["tests"],
        "properties": {"pipeline": pipeline, "tests": cases_schema()},
        "additionalProperties": False,
    }


def cases_schema() -> Schema:
    """A list of tests. Columns and nodes are checked when the tests are run."""
    rows = {"type": "object", "additionalProperties": _ROWS}
    properties: dict[str, Schema] = {
        "name": {**scalars.text(is_required=True), "description": "What the test shows; unique in the file."},
        "parallelism": {**nullable(_width()), "description": "How many subtasks nodes have in this test."},
        "environment": {
            "type": ["object", "null"],
            "additionalProperties": scalars.text(),
            "description": "Variables that `${NAME}` reads in this test.",
        },
        "time": {"type": ["string", "number", "null"], "description": "Where the clock starts."},
        "sources": {
            "type": ["object", "null"],
            "additionalProperties": {"enum": ["real"]},
            "description": "Sources that run as they are; all others get their rows here.",
        },
        "rows": {**nullable(rows), "description": "The rows of each source, before the steps."},
        "steps": {"type": ["array", "null"], "items": _step(), "description": "What happens, one after the other."},
        "expect": {
            **nullable(_expectations()),
            "description": "What must have come out of each node in the whole run.",
        },
        "error": {**nullable(scalars.text()), "description": "The pipeline must fail, and say this."},
    }
    case = {"type": "object", "required": ["name"], "properties": properties, "additionalProperties": False}
    return {"type": "array", "items": case}


def _step() -> Schema:
    names = {"type": ["array", "string"], "items": {"type": "string"}}
    properties: dict[str, Schema] = {
        "rows": {"type": "object", "additionalProperties": _ROWS, "description": "Rows come out of sources."},
        "watermark": {"type": "object", "description": "Sources promise that no earlier event follows."},
        "idle": {**names, "description": "Sources have nothing for now, and hold nobody up."},
        "end": {**names, "description": "The data of sources ends."},
        "checkpoint": {"type": "null", "description": "The epoch ends, is published and committed."},
        "expect": {**_expectations(), "description": "What came out of each node since the last such step."},
        "crash": {
            **nullable(scalars.one_of(list(CrashMoment), ["The epoch is lost.", "Its output is not visible yet."])),
            "description": "The process dies, and the job goes on after its last checkpoint.",
        },
        "restart": {"type": "null", "description": "A graceful stop, and a start."},
        "rescale": {**_width(), "description": "A graceful stop, and a start with so many subtasks."},
        "advance_time": {**scalars.duration(), "description": "The epoch ends, and the clock moves."},
    }
    mapping = {"minProperties": 1, "maxProperties": 1, "properties": properties, "additionalProperties": False}
    words = {"pattern": f"^(?:{'|'.join(_BARE)})$", "patternErrorMessage": f"A bare step is {', '.join(_BARE)}."}
    return {"type": ["object", "string"], **mapping, **words, "examples": list(_BARE)}


def _expectations() -> Schema:
    count = scalars.whole_number(least=0)
    inner: Schema = {
        "type": ["array", "object"],
        "items": {"type": "object"},
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {"any_order": _ROWS, "in_order": _ROWS, "count": count},
        "additionalProperties": False,
    }
    return {"type": "object", "additionalProperties": inner}


def _width() -> Schema:
    return scalars.whole_number(least=1, greatest=MAX_PARALLELISM)
