"""What requests may say."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from arroyo_console.bounds import MAX_LINES, MAX_PAGE, MAX_ROWS, MAX_SECONDS, PAGE
from arroyo_console.safety.access import Visitor
from arroyo_console.safety.middleware import VISITOR
from arroyo_console.service import Console
from arroyo_console.values import Language, Page, Role, Wish
from arroyo_core.pipeline.file_keys import MAX_PARALLELISM

T = TypeVar("T")

_ID = r"^[a-z]+_[0-9a-f]{20}$"
#: Of names of nodes, tables and the like: anything but what no name has.
_NAME = r"^[^\x00-\x1f\x7f]+$"
_MOST = 2**31 - 1

PipelineId = Annotated[str, Path(pattern=_ID, description="The id of a pipeline")]
JobId = Annotated[str, Path(pattern=_ID, description="The id of a job")]
Epoch = Annotated[int, Path(ge=1, le=2**32 - 1)]
Name = Annotated[str, Path(pattern=_NAME, max_length=500)]
NameQuery = Annotated[str | None, Query(pattern=_NAME, max_length=500)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many at most")]
After = Annotated[str | None, Query(pattern="^[0-9]{1,9}$", description="What `next` of the page before said")]
Search = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="A part of the name")]
Rows = Annotated[int, Query(ge=1, le=MAX_ROWS)]
Lines = Annotated[int, Query(ge=1, le=MAX_LINES)]
Offset = Annotated[int | None, Query(ge=0, le=2**53)]
Run = Annotated[int | None, Query(ge=1, le=_MOST, description="The number of a run; by default the newest")]
OptionalEpoch = Annotated[int | None, Query(ge=1, le=2**32 - 1, description="By default the newest")]
DEFAULT_LIMIT = PAGE


class PageOf(BaseModel, Generic[T]):
    """Some of many; `next` is the `after` of those that follow, null at the end."""

    items: list[T]
    total: int
    next: str | None = None

    @classmethod
    def of(cls, page: Page[T]) -> PageOf[T]:
        return cls(items=list(page.items), total=page.total, next=page.next)


class Body(BaseModel):
    """A body of a request: a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


class TextBody(Body):
    """The text of a pipeline."""

    query: str = Field(description="The text")
    language: Language = Language.SQL


class PreviewBody(TextBody):
    """A text to run on a sample."""

    node: str | None = Field(None, pattern=_NAME, max_length=500, description="By default all nodes")
    rows: int = Field(100, ge=1, le=MAX_ROWS)
    seconds: float = Field(10.0, ge=1, le=MAX_SECONDS)


class CreateBody(TextBody):
    """A new pipeline; its name is in the text."""

    parallelism: int | None = Field(None, ge=1, le=MAX_PARALLELISM)
    start: bool = True


class ChangeBody(Body):
    """What is to change of a pipeline."""

    query: str | None = None
    language: Language | None = None
    parallelism: int | None = Field(None, ge=1, le=MAX_PARALLELISM)
    #: `start`, or how to stop.
    stop: Wish | None = None


class RestartBody(Body):
    """How to start a pipeline again."""

    force: bool = Field(False, description="Kill its process instead of ending its epoch")
    ignore_state: bool = Field(False, description="Begin with empty state; its checkpoints are removed")


class ReplayBody(Body):
    """Which open dead letters to feed through the pipeline's newest text."""

    node: str | None = Field(None, pattern=_NAME, max_length=500)
    error: str | None = Field(None, pattern=_NAME, max_length=500)
    limit: int | None = Field(None, ge=1, le=10**9)
    dry_run: bool = True


class SessionBody(Body):
    """To log in."""

    token: str = Field(max_length=1_000)


class SessionInfo(BaseModel):
    """Who asks; `csrf` is what requests of a browser's scripts send as X-CSRF-Token."""

    role: Role | None = None
    user: str = ""
    needs_login: bool = True
    csrf: str = ""


def visitor_of(request: Request) -> Visitor | None:
    """Who asks, as the guard has found."""
    visitor: Visitor | None = request.scope.get(VISITOR)
    return visitor


def console_for(request: Request) -> Console:
    """The console in the role of who asks."""
    console: Console = request.app.state.console
    visitor = visitor_of(request)
    return console.as_role(visitor.role if visitor is not None else Role.READ)


Asked = Annotated[Console, Depends(console_for)]
