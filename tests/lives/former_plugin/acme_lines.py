from pathlib import Path

import pyarrow as pa
from google.protobuf import struct_pb2

from arroyo_core import ArroyoSchema, ConstructedOperator, OperatorConstructor, SourceFinishType, SourceOperator
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_core.state import global_table_config, hash_key

LINES = pa.schema([("file", pa.string()), ("line", pa.string())])
BATCH_ROWS = 10_000


class LineSource(SourceOperator):
    def __init__(self, folder):
        self._folder = Path(folder)

    def name(self):
        return "acme.lines"

    def output_schema(self, inputs):
        return ArroyoSchema(LINES)

    def tables(self):
        return global_table_config("positions", "how many lines of each file were read", is_partitioned=True)

    def on_start(self, ctx):
        self._task = ctx.task_info
        self._positions = ctx.table_manager.get_partitioned_keyed_state(
            "positions", self._owner, key_type=str, value_type=int
        )

    def _owner(self, file):
        return hash_key(file) % self._task.parallelism

    def run(self, ctx, collector):
        for path in sorted(self._folder.glob("*.log")):
            if self._owner(path.name) != self._task.task_index:
                continue  # another subtask's
            lines = path.read_text(encoding="utf-8").splitlines()
            position = self._positions.get(path.name) or 0
            while position < len(lines):
                message = ctx.control()
                if message is not None:
                    return message.finish_type
                size = min(BATCH_ROWS, ctx.rows_left() or BATCH_ROWS)
                part = lines[position : position + size]
                collector.collect(pa.record_batch([pa.array([path.name] * len(part)), pa.array(part)], schema=LINES))
                position += len(part)
                self._positions.insert(path.name, position)
        return SourceFinishType.FINAL


class LineSourceConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct
    inputs = (0, 0)

    def with_config(self, config, registry):
        unknown = sorted(set(config) - {"folder"})
        if unknown:
            raise ConfigError(f"there is no field {unknown[0]!r}", field=unknown[0], allowed=["folder"])
        if "folder" not in config or not isinstance(config["folder"], str):
            raise ConfigError("folder is required, a text", field="folder")
        return ConstructedOperator.from_source(LineSource(config["folder"]))


@hookimpl
def arroyo_register(registry):
    registry.add("acme.lines", LineSourceConstructor())
