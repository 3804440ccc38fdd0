from google.protobuf import struct_pb2

from arroyo_core import ArrowOperator, ConstructedOperator, OperatorConstructor
from arroyo_core.plugin import hookimpl
from arroyo_core.state import global_table_config


class RunningCount(ArrowOperator):
    def name(self):
        return "acme.running_count"

    def output_schema(self, inputs):
        return inputs[0]

    def tables(self):
        return global_table_config("seen", "rows seen, by subtask")

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_global_keyed_state("seen")

    def process_batch(self, batch, ctx, collector):
        key = f"rows-{ctx.task_info.task_index}"
        self.view.insert(key, (self.view.get(key) or 0) + batch.num_rows)
        collector.collect(batch)


class RunningCountConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_operator(RunningCount())


@hookimpl
def arroyo_register(registry):
    registry.add("acme.running_count", RunningCountConstructor())
