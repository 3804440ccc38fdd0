"""What `--ship` of `arroyo run` does, and the same for a session of a program or notebook."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from arroyo_core.pipeline import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.spark import Provider, Provision
from arroyo_core.spark.provisions import check_provided, provide
from arroyo_core.spark.shuffles import is_connect
from arroyo_pack.needs import needed_by
from arroyo_pack.packages import PackError
from arroyo_pack.packing import Kind, Pack, pack
from arroyo_pack.probing import check_executors

NONE = "none"
_ENDINGS = {Kind.WHEELS: (".zip",), Kind.ENV: (".tar.gz", ".tgz", ".zip")}


def shipper_for(args: argparse.Namespace, plans: Sequence[Plan]) -> Shipper | None:
    """What `arroyo run` is asked to send; None for nothing."""
    is_asked = args.ship != NONE or args.ship_with or args.ship_python or args.ship_file
    return Shipper(args, plans, installed_plugins()) if is_asked else None


class Shipper(Provider):
    """Packs what the pipelines of an `arroyo run` need."""

    def __init__(self, args: argparse.Namespace, plans: Sequence[Plan], plugins: PluginSet) -> None:
        self.asked_by = f"--ship {args.ship}"
        self._args = args
        self._plans = plans
        self._plugins = plugins

    def prepare(self, tell: Callable[[str], None]) -> Provision:
        """Raises `PackError` for options that do not go together, and for what cannot be packed."""
        kind = self._kind()
        if self._args.ship_file is not None:
            return provision_of(kind, _file(kind, self._args.ship_file), asked_by=self.asked_by)
        names = [*needed_by(self._plans, self._plugins), *self._args.ship_with]
        made = pack(kind, names, python=self._args.ship_python, tell=tell)
        return provision_of_pack(made, tell, asked_by=self.asked_by)

    def _kind(self) -> Kind:
        args = self._args
        if args.ship == NONE:
            raise PackError("--ship-with, --ship-python and --ship-file go with --ship wheels or --ship env")
        kind = Kind(args.ship)
        if args.ship_file is not None and (args.ship_with or args.ship_python):
            raise PackError("--ship-file is sent as it is: --ship-with and --ship-python do not go with it")
        if args.ship_python is not None and kind is Kind.WHEELS:
            raise PackError(
                "--ship-python goes with --ship env; for --ship wheels name the Python of executors with "
                "--conf spark.pyspark.python=PATH"
            )
        return kind


def provision_of(kind: Kind, path: Path, *, asked_by: str) -> Provision:
    """An archive that was made elsewhere: what is in it is not known, and nothing is checked but that it starts."""
    check = partial(check_executors, packed=(), left_out=(), asked_by=asked_by)
    if kind is Kind.WHEELS:
        return Provision(asked_by=asked_by, packages=path, check=check)
    return Provision(asked_by=asked_by, environment=path, check=check)


def provision_of_pack(made: Pack, tell: Callable[[str], None], *, asked_by: str) -> Provision:
    """An archive that was made here; executors are asked whether they have what it is to bring, and what it cannot."""
    tell(f"shipping {made.path.name} ({made.size}, {'as packed before' if made.was_there else 'packed now'})")
    check = partial(check_executors, packed=made.packed, left_out=made.left_out, asked_by=asked_by)
    if made.kind is Kind.WHEELS:
        return Provision(asked_by=asked_by, packages=made.path, check=check)
    return Provision(asked_by=asked_by, environment=made.path, check=check)


def ship(spark: Any, *pipelines: Any, kind: str = Kind.WHEELS, more: Sequence[str] = ()) -> None:
    """Send what these pipelines need to the executors of a session that runs already, as in a notebook.

    A classic session takes `wheels`, one of Spark Connect `env` too. `more` are further distributions, by name. To be
    called before the first pipeline runs there: workers that have imported arroyo already keep what they have.
    Raises `SetupError` where executors cannot use it.
    """
    told: Callable[[str], None] = _silent
    names = [*needed_by([pipeline.plan for pipeline in pipelines], installed_plugins()), *more]
    provision = provision_of_pack(pack(Kind(kind), names, tell=told), told, asked_by=f"ship(kind={kind!r})")
    provide(provision, spark, is_connect=is_connect(spark))
    check_provided(provision, spark)


def _silent(text: str) -> None:
    return


def _file(kind: Kind, name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise PackError(f"--ship-file {name}: there is no such file")
    if not name.endswith(_ENDINGS[kind]):
        raise PackError(f"--ship-file {name}: for --ship {kind} it ends in {' or '.join(_ENDINGS[kind])}")
    return path
