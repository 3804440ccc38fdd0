"""Which query of Structured Streaming a batch is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.errors import SetupError
from arroyo_core.spark.shuffles import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What Spark sets in the thread of a query, for its batches.
_QUERY_ID = "sql.streaming.queryId"


def query_of(frame: DataFrame, named: str | None = None) -> str:
    """What the stream of a batch is called, if it has a name; else the id of its query.

    The id is in the query's checkpoint: the same after a restart, another one for a new checkpoint.
    """
    session = frame.sparkSession
    if is_connect(session):
        # There are no properties of threads, and a function that foreachBatch calls is not told its query. A name from
        # the user is not enough: with it, a query with a new checkpoint would be taken for the old one.
        raise SetupError(
            "on_batch does not run on Spark Connect: its server does not say which query a batch is of, so a query "
            "that starts over could not be told from one that goes on; use a classic session, or "
            "Pipeline.run(inputs=...) for a DataFrame that is all there is"
        )
    found = named or session.sparkContext.getLocalProperty(_QUERY_ID)
    if found:
        return str(found)
    raise SetupError(
        "this is not a batch of a streaming query, or its thread does not tell which: name the stream yourself, "
        'with on_batch(input=..., query="...")'
    )
