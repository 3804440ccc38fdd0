"""A part of a pipeline's page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from arroyo_console.pages.frame import Site
from arroyo_console.values import Pipeline


class Part(ABC):
    """Built when it is chosen, and thrown away when another one is."""

    #: How often `refresh` is called; 0 for never.
    TICK_S: ClassVar[float] = 0.0

    def __init__(self, site: Site, pipeline: Pipeline) -> None:
        self.site = site
        self.pipeline = pipeline

    @property
    def job_id(self) -> str:
        return self.pipeline.job.id

    @abstractmethod
    async def build(self) -> None:
        """Make its elements, with what is known now. What raises `ConsoleError` is told in the part itself."""

    async def refresh(self) -> None:  # noqa: B027  # parts that do not move have none
        """Show what is new."""
