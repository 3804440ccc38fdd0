"""How commands that read a pipeline open its bundles of user functions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arroyo_core.runtime.user_code import BundleOpener


def add_insecure(parser: argparse.ArgumentParser) -> None:
    """Add the flag that `bundle_opener` reads."""
    parser.add_argument(
        "--insecure-udfs",
        action="store_true",
        help="use remote bundles of UDFs as they are, where the pipeline gives no sha256",
    )


def bundle_opener(args: argparse.Namespace) -> BundleOpener:
    from arroyo_core.runtime.user_code import BundleOpener

    return BundleOpener(allows_unpinned=args.insecure_udfs)
