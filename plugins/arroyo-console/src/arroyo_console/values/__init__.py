"""What the console says of pipelines, jobs and what is installed: the values of the HTTP API and of the pages.

Times are in microseconds since 1970. What nobody knows is None. No value has a secret in it.
"""

from arroyo_console.values.jobs import Job, JobRun, JobSummary, Pipeline, PipelineVersion, State, StateChange, Wish
from arroyo_console.values.running import (
    Bottleneck,
    EpochPoint,
    JobError,
    JobMetrics,
    LogLines,
    OperatorMetrics,
    SubtaskMetrics,
)
from arroyo_console.values.server import Connector, Finding, Function, Page, Plugin, Role, ServerInfo, SettingDoc
from arroyo_console.values.storage import (
    Checkpoint,
    Letter,
    LetterSummary,
    OperatorCheckpoint,
    ReplayResult,
    TableInfo,
    TableRows,
)
from arroyo_console.values.texts import (
    Column,
    Detail,
    Graph,
    GraphChain,
    GraphEdge,
    GraphNode,
    Language,
    NodePreview,
    Preview,
    Problem,
    Validation,
)

__all__ = [
    "Bottleneck",
    "Checkpoint",
    "Column",
    "Connector",
    "Detail",
    "EpochPoint",
    "Finding",
    "Function",
    "Graph",
    "GraphChain",
    "GraphEdge",
    "GraphNode",
    "Job",
    "JobError",
    "JobMetrics",
    "JobRun",
    "JobSummary",
    "Language",
    "Letter",
    "LetterSummary",
    "LogLines",
    "NodePreview",
    "OperatorCheckpoint",
    "OperatorMetrics",
    "Page",
    "Pipeline",
    "PipelineVersion",
    "Plugin",
    "Preview",
    "Problem",
    "ReplayResult",
    "Role",
    "ServerInfo",
    "SettingDoc",
    "State",
    "StateChange",
    "SubtaskMetrics",
    "TableInfo",
    "TableRows",
    "Validation",
    "Wish",
]
