"""Functions of the user's own: decorators that declare them, and what they become."""

from arroyo_core.udf.aggregate import AggregateUdf, udaf
from arroyo_core.udf.asynchronous import AsyncUdf, async_udf
from arroyo_core.udf.batch import BatchUdf, batch_udf
from arroyo_core.udf.scalar import ScalarUdf, udf
from arroyo_core.udf.user_function import Parameter, SourceKind, UdfSource, UserFunction, Volatility

__all__ = [
    "AggregateUdf",
    "AsyncUdf",
    "BatchUdf",
    "Parameter",
    "ScalarUdf",
    "SourceKind",
    "UdfSource",
    "UserFunction",
    "Volatility",
    "async_udf",
    "batch_udf",
    "udaf",
    "udf",
]
