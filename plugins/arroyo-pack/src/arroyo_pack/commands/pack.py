"""`arroyo pack`: what `arroyo run --ship` would send, as a file."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from arroyo_core.api.visible import visible
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, planning
from arroyo_core.errors import SetupError
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins
from arroyo_core.spark.provisions import (
    ARCHIVES,
    ENVIRONMENT_FOLDER,
    ENVIRONMENT_PYTHON,
    PACKAGES_FOLDER,
    WORKER_PATH,
    WORKER_PYTHON,
)
from arroyo_pack.needs import needed_by, needed_by_all
from arroyo_pack.packages import PackError
from arroyo_pack.packing import Kind, Pack, pack


def run(args: argparse.Namespace) -> int:
    kind = Kind(args.kind)
    if args.python is not None and kind is Kind.WHEELS:
        raise PackError("--python goes with --as env: wheels run on the Python that executors have")
    made = pack(kind, [*_names(args), *args.more], python=args.python, tell=_tell)
    path = _copied(made.path, args.output) if args.output is not None else made.path
    print(_as_json(made, path) if args.format == JSON else visible(_as_text(made, path)))
    return OK


def settings_of(made: Pack, path: Path) -> dict[str, str]:
    """What spark-submit, or a page of settings, has to say."""
    if made.kind is Kind.WHEELS:
        return {ARCHIVES: f"{path}#{PACKAGES_FOLDER}", WORKER_PATH: f"./{PACKAGES_FOLDER}"}
    return {ARCHIVES: f"{path}#{ENVIRONMENT_FOLDER}", WORKER_PYTHON: ENVIRONMENT_PYTHON}


def _names(args: argparse.Namespace) -> list[str]:
    plugins = installed_plugins()
    if not args.files:
        return needed_by_all(plugins)
    return needed_by([plan_file(file, **planning(args)).plan for file in args.files], plugins)


def _copied(path: Path, output: str) -> Path:
    suffixes = "".join(path.suffixes[-2:]) if path.name.endswith(".tar.gz") else path.suffix
    if not output.endswith(suffixes):
        # Spark knows by the name how to unpack it.
        raise PackError(f"-o {output}: the name of this archive ends in {suffixes}")
    try:
        shutil.copyfile(path, output)
    except OSError as error:
        raise SetupError(f"cannot write {output}: {error.strerror or error}") from error
    return Path(output)


def _as_text(made: Pack, path: Path) -> str:
    lines = [f"{path}: {made.kind}, {made.size}", "", "packed:"]
    lines += [f"  {package}" for package in made.packed]
    if made.left_out:
        lines += ["", "executors must have, since it has compiled code:"]
        lines += [f"  {package.name}{','.join(package.specifiers)}" for package in made.left_out]
    lines += ["", "arroyo run sends it with:", f"  --ship {made.kind} --ship-file {path}"]
    lines += ["", "Spark sends it with:"]
    lines += [f"  --conf {key}={value}" for key, value in settings_of(made, path).items()]
    return "\n".join(lines)


def _as_json(made: Pack, path: Path) -> str:
    told = {
        "path": str(path),
        "kind": str(made.kind),
        "bytes": path.stat().st_size,
        "packed": {package.name: package.version for package in made.packed},
        "needed": {package.name: ",".join(package.specifiers) for package in made.left_out},
        "settings": settings_of(made, path),
    }
    return json.dumps(told, indent=2)


def _tell(text: str) -> None:
    print(f"arroyo: {text}", file=sys.stderr, flush=True)
