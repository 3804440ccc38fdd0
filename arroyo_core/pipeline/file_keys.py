"""The keys of a pipeline file: each is defined here, once, with what it may hold, its default and what it means.

The reader (`spec.py`), the JSON Schema, the reference and the order in which `arroyo fmt` puts keys are made of this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from arroyo_core.pipeline.plan import CheckpointSpec

MAX_PARALLELISM = 4096
MAX_KEEP = 1_000_000
INT64_MAX = 2**63 - 1
ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DEFAULTS = CheckpointSpec()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string. `pattern` is the form of the whole; then `mistake` says what is wrong, and `form` what is allowed."""

    pattern: re.Pattern[str] | None = None
    mistake: str = ""
    form: str = ""
    #: What is replaced by `_` to suggest a text that is allowed.
    forbidden: str = ""
    #: Whether it decides the shape of the graph, which must not depend on the environment.
    is_fixed: bool = False
    #: Whether it must not be empty.
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number."""

    least: int
    greatest: int


@dataclass(frozen=True, slots=True)
class Duration:
    """Such as `10s`; read as microseconds."""

    least_us: int


@dataclass(frozen=True, slots=True)
class Size:
    """Such as `64MiB`; read as bytes."""

    least: int


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping with keys of its own; with `is_list` a list of such."""

    section: Section
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """What has a form of its own, with a reader and a schema of its own."""


Form = Text | Whole | Duration | Size | Part | Other


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. What is written `null` counts as not written."""

    name: str
    form: Form
    #: One or more sentences.
    text: str
    is_required: bool = False
    #: What is read where nothing is written.
    default: Any = None
    #: What happens then, where there is no such value.
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of the file, with its keys in the order in which they are best written."""

    keys: tuple[Key, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys if key.is_required)

    def key(self, name: str) -> Key:
        return next(key for key in self.keys if key.name == name)


CHECKPOINT = Section(
    (
        Key(
            name="url",
            form=Text(is_filled=True),
            text="A folder, or anything that fsspec opens: every epoch is published there.",
            otherwise="state is kept for the run, and then removed",
        ),
        Key(
            name="interval",
            form=Duration(1_000),
            text="An epoch ends after so long, at least 1ms.",
            default=_DEFAULTS.interval_ms * 1_000,
        ),
        Key(
            name="rows",
            form=Whole(1, INT64_MAX),
            text="An epoch ends after so many rows of the sources.",
            otherwise="no limit",
        ),
        Key(
            name="bytes",
            form=Size(1),
            text="An epoch ends after so many bytes of the sources.",
            otherwise="no limit",
        ),
        Key(name="keep", form=Whole(1, MAX_KEEP), text="How many epochs stay readable.", default=_DEFAULTS.keep),
        Key(
            name="timeout",
            # Tasks tell ten times as often how far they are.
            form=Duration(1_000_000),
            text="An epoch that makes no progress for so long is cancelled, and the job restarts from its last "
            "checkpoint; at least 1s. No progress: no task begins or ends, no row moves, and no source asks "
            "whether to end.",
            default=_DEFAULTS.timeout_ms * 1_000,
        ),
    )
)

UDF = Section(
    (
        Key(
            name="url",
            form=Text(is_filled=True),
            text="A wheel, or a zip of one module, that fsspec opens.",
            is_required=True,
        ),
        Key(
            name="sha256",
            form=Text(
                pattern=re.compile(r"[0-9A-Fa-f]{64}"),
                mistake="'sha256' must be 64 hexadecimal digits",
                form="A sha256 has 64 hexadecimal digits.",
            ),
            text="Of the bundle; a remote one needs it. `arroyo udf push` prints it.",
        ),
        Key(
            name="as",
            form=Text(
                pattern=re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
                mistake="'as' begins with a letter or '_' and may hold letters, digits and '_': functions are called "
                "as.name",
                form="This begins with a letter or '_'; letters, digits and '_' follow.",
                forbidden=r"[^A-Za-z0-9_]+|^(?=[^A-Za-z_])",
                is_fixed=True,
            ),
            text="Functions are called as `as.name`.",
            otherwise="by their own names",
        ),
    )
)

_NODE_ID = Text(
    pattern=ID,
    mistake="an id begins with a letter or '_' and may hold letters, digits, '_' and '-'",
    form="An id begins with a letter or '_' and may hold letters, digits, '_' and '-'.",
    forbidden=r"[^A-Za-z0-9_-]+|^(?=[^A-Za-z_])",
    is_fixed=True,
)

NODE = Section(
    (
        Key(
            name="id",
            form=_NODE_ID,
            text="The name of the node, unique in the file. State belongs to it: a renamed node starts empty, unless "
            "it says what it `was`.",
            is_required=True,
        ),
        Key(
            name="was",
            form=_NODE_ID,
            text="The id that the node had before: it takes over the state of that one. It may stay or go once there "
            "is a checkpoint with the new id.",
        ),
        Key(name="operator", form=Other(), text="What the node does: `plugin.operator`.", is_required=True),
        Key(
            name="inputs",
            form=Other(),
            text="The nodes that it reads, in order: `id`, or `id.output` for a side output such as `windows.late`.",
        ),
        Key(
            name="parallelism",
            form=Whole(1, MAX_PARALLELISM),
            text="How many subtasks this node has.",
            otherwise="that of the pipeline",
        ),
        Key(name="config", form=Other(), text="The operator's settings, as its page of the reference lists them."),
    )
)

PIPELINE = Section(
    (
        Key(
            name="name",
            form=Text(
                pattern=re.compile(r"(?=.*[A-Za-z0-9_-])[A-Za-z0-9_.-]+"),
                mistake="'name' may hold letters, digits, '_', '-' and '.', and not dots only: it is the job id and "
                "part of paths",
                form="A name may hold letters, digits, '_', '-' and '.', and not dots only.",
                forbidden=r"[^A-Za-z0-9_.-]+",
            ),
            text="The job's id. It names the checkpoints, so a renamed pipeline starts over.",
            is_required=True,
        ),
        Key(name="parameters", form=Other(), text="Values that `--set NAME=VALUE` may replace, read as `${NAME}`."),
        Key(
            name="parallelism",
            form=Whole(1, MAX_PARALLELISM),
            text="How many subtasks every node has that does not say otherwise.",
            default=1,
        ),
        Key(
            name="execution",
            form=Text(
                pattern=re.compile("auto|jobs|live"),
                mistake="'execution' is one of auto, jobs, live",
                form="An execution is one of auto, jobs, live.",
            ),
            text="How epochs run on Spark: `jobs`, each as a Spark job; `live`, in workers that live on from epoch to "
            "epoch; `auto`, live where Spark can.",
            default="jobs",
        ),
        Key(name="checkpoint", form=Part(CHECKPOINT), text="When an epoch ends, and where its state goes."),
        Key(name="udfs", form=Part(UDF, is_list=True), text="Bundles of user functions, which expressions may call."),
        Key(
            name="nodes",
            form=Other(),
            text="The sources, operators and sinks of the pipeline. The order does not matter.",
            is_required=True,
        ),
    )
)
