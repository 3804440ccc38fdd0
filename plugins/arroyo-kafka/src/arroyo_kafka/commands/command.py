"""Adds `arroyo kafka topics|tail|lag|offsets|broker`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from arroyo_core.api.units import DURATION_UNITS
from arroyo_core.cli.arguments import count, duration_us, port
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.options import add_format, add_planning
from arroyo_kafka import broker
from arroyo_kafka.commands import lag, offsets, tail, topics

#: How long nothing must have stirred before a job counts as stopped.
QUIET_US = 10 * DURATION_UNITS["m"]
SHOWN_ROWS = 10

if TYPE_CHECKING:
    _Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "kafka",
        group=CommandGroup.STATE,
        runs_pipelines=False,
        help="look at Kafka topics, and at a job's positions in them",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_topics(actions)
    _add_tail(actions)
    _add_lag(actions)
    _add_offsets(actions)
    _add_broker(actions)


def _add(
    actions: _Actions, name: str, text: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(command=command)
    return parser


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pipeline", metavar="PIPELINE", help="the pipeline file")


def _add_topics(actions: _Actions) -> None:
    parser = _add(actions, "topics", "list the topics of a cluster", topics.topics)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("pipeline", nargs="?", metavar="PIPELINE", help="a pipeline file: the clusters that it reads")
    where.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="the brokers to ask")
    add_format(parser)
    add_planning(parser)


def _add_tail(actions: _Actions) -> None:
    parser = _add(actions, "tail", "show the last messages that a source would read, as its rows", tail.tail)
    _add_pipeline(parser)
    parser.add_argument("node", metavar="NODE", help="a kafka.source of the pipeline")
    parser.add_argument(
        "-n", dest="rows", type=count, default=SHOWN_ROWS, metavar="N", help="of each partition; default: %(default)s"
    )
    parser.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    add_format(parser)
    add_planning(parser)


def _add_lag(actions: _Actions) -> None:
    parser = _add(actions, "lag", "show how far a job is behind, by partition", lag.lag)
    _add_pipeline(parser)
    add_format(parser)
    add_planning(parser)


def _add_offsets(actions: _Actions) -> None:
    parser = actions.add_parser("offsets", help="show and move the positions of a job")
    parts = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = _add(parts, "show", "show the positions of a job's newest checkpoint", offsets.show)
    _add_pipeline(show)
    add_format(show)
    add_planning(show)
    move = _add(parts, "set", "move positions of a job that does not run, by a new checkpoint", offsets.move)
    _add_pipeline(move)
    move.add_argument("node", metavar="NODE", help="a kafka.source of the pipeline")
    move.add_argument(
        "places",
        nargs="+",
        metavar="TOPIC:PARTITION=OFFSET",
        help="the offset to read next: a number, earliest or latest; `*` for all partitions of the topic",
    )
    move.add_argument("--yes", action="store_true", help="do it; without this flag it is only said")
    move.add_argument(
        "--quiet-for",
        type=duration_us,
        default=QUIET_US,
        metavar="TIME",
        help="refuse unless nothing has stirred for so long, so that no driver runs (default: 10m)",
    )
    move.add_argument("--force", action="store_true", help="do not ask whether a driver runs")
    add_format(move)
    add_planning(move)


def _add_broker(actions: _Actions) -> None:
    parser = _add(actions, "broker", "run a broker for trying out: one node, whose data goes with it", broker.run)
    parser.add_argument("--port", type=port, default=9092, metavar="N", help="on 127.0.0.1; default: %(default)s")
    parser.add_argument("--version", default=broker.VERSION, metavar="X", help="of Kafka; default: %(default)s")
