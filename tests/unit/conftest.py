"""What tests of several folders use."""

import logging

import pytest


@pytest.fixture
def without_spark(monkeypatch):
    """`arroyo run` in this process."""
    # Not for every test of this folder: most need no command line.
    from arroyo_core.cli import run as run_command
    from arroyo_core.runtime.job import Job
    from arroyo_core.runtime.local import LocalExecutor
    from arroyo_core.spark.pipeline import Pipeline

    def run_here(self, session, **options):
        url = self.plan.checkpoint.url
        return Job(self.plan, LocalExecutor(self.plugins), plugins=self.plugins, storage_url=url, **options).run()

    monkeypatch.setattr(run_command, "start_spark", lambda *arguments, **options: None)
    monkeypatch.setattr(run_command, "leave_spark", lambda session: None)
    monkeypatch.setattr(Pipeline, "run", run_here)
    loggers = [logging.getLogger(), logging.getLogger("arroyo_core")]
    before = [list(logger.handlers) for logger in loggers]
    yield
    for logger, handlers in zip(loggers, before, strict=True):
        logger.handlers = handlers
