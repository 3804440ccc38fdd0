from tests.own_logging import own_logging

__all__ = ["own_logging"]
