"""The options of `arroyo run --metrics-port`, apart: every command loads them, and should not wait for a server."""

from __future__ import annotations

import argparse

from arroyo_core.cli.arguments import port


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what `MetricsPort` reads to the options of `arroyo run`."""
    parser.add_argument(
        "--metrics-port",
        type=port,
        metavar="PORT",
        help="serve metrics for Prometheus there, at /metrics, and whether the job is well, at /live and /ready",
    )
    parser.add_argument(
        "--metrics-bind",
        default="127.0.0.1",
        metavar="HOST",
        help="the address that --metrics-port listens on; 0.0.0.0 for all of this machine (default: %(default)s)",
    )
