"""A fixture for tests that run `arroyo run` within their own process."""

import logging

import pytest


@pytest.fixture
def own_logging():
    """`arroyo run` sets up logging for its process, which here is that of all tests."""
    loggers = [logging.getLogger(), logging.getLogger("arroyo_core")]
    before = [list(logger.handlers) for logger in loggers]
    yield
    for logger, handlers in zip(loggers, before, strict=True):
        logger.handlers = handlers
