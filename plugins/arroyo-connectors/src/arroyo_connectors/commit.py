"""The commit of an epoch: its rows and its token in one transaction, however often it is repeated.

An epoch is in the target if and only if the token of its incarnation and node says so.
"""

from __future__ import annotations

import pyarrow.compute as pc

from arroyo_connectors.changes import DELETED, Mode
from arroyo_connectors.staging import StagedBatch, StagedEpoch
from arroyo_connectors.target import Committed, Target, TokenKey, Writer
from arroyo_core.api import OperatorContext
from arroyo_core.errors import ArroyoError
from arroyo_core.state import FencedError


def commit_epoch(target: Target, staged: StagedEpoch, ctx: OperatorContext) -> None:
    """Return when the epoch, which has rows, is in the target.

    Raises `FencedError` where a newer driver has written, and what the target makes of an error of its client.
    """
    try:
        with target.transaction() as writer:
            _commit(target, writer, staged, ctx)
    except ArroyoError:
        raise
    except Exception as error:
        translated = target.translate(error)
        if translated is None:
            raise
        raise translated from error


def _commit(target: Target, writer: Writer, staged: StagedEpoch, ctx: OperatorContext) -> None:
    token = ctx.token
    key = TokenKey(token.incarnation, ctx.task_info.operator_id)
    held = writer.lock_token(key)
    if held is not None and held.generation > token.generation:
        raise FencedError(
            f"generation {held.generation} of this job has written to {target.name()}, up to epoch {held.epoch}, and "
            f"this driver is generation {token.generation}: this driver must stop"
        )
    if held is not None and held.epoch >= token.epoch:
        if held.generation < token.generation:
            # So that the driver before this one is refused from now on, whatever it brings.
            writer.write_token(key, Committed(token.generation, held.epoch), is_new=False)
        return
    for batch in staged.batches():
        _write(writer, batch, ctx)
    writer.write_token(key, Committed(token.generation, token.epoch), is_new=held is None)


def _write(writer: Writer, batch: StagedBatch, ctx: OperatorContext) -> None:
    if batch.staged.mode is Mode.APPEND:
        writer.add(batch.rows)
        ctx.count("written_rows", batch.rows.num_rows)
        return
    deleted = batch.rows.column(DELETED)
    rows = batch.rows.drop_columns([DELETED])
    kept = rows.filter(pc.invert(deleted))
    if kept.num_rows:
        writer.replace(kept)
        ctx.count("written_rows", kept.num_rows)
    gone = rows.filter(deleted).select(list(batch.staged.keys))
    if gone.num_rows:
        writer.remove(gone)
        ctx.count("deleted_rows", gone.num_rows)
