"""`arroyo proto`: the generated code of a plugin's configs."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import arroyo_core
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.errors import ConfigError, SetupError


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "proto",
        group=CommandGroup.EXTENSIONS,
        runs_pipelines=False,
        help="compile the configs of a plugin",
        description="Compile the .proto files of a plugin, after a change: modules beside them, and their comments for "
        "'arroyo docs' and editors into descriptors.binpb of the plugin's package. Needs grpcio-tools: "
        "pip install 'grpcio-tools<1.79'.",
    )
    parser.add_argument(
        "sources",
        nargs="?",
        type=Path,
        default=Path("src"),
        metavar="DIR",
        help="the folder that holds the plugin's package; default: src",
    )
    parser.set_defaults(command=proto)


def proto(args: argparse.Namespace) -> int:
    sources: Path = args.sources
    protos = sorted(sources.rglob("*.proto"))
    packages = sorted({path.relative_to(sources).parts[0] for path in protos})
    if len(packages) != 1 or (sources / packages[0]).is_file():
        found = f"{len(packages)} packages with .proto files" if packages else "no .proto file"
        raise ConfigError(f"there is {found} below {str(sources)!r}: name the folder that holds the plugin's package")
    if find_spec("grpc_tools") is None:
        raise SetupError("the compiler of .proto files is missing: pip install 'grpcio-tools<1.79'")
    descriptors = sources / packages[0] / "descriptors.binpb"
    # Wherever arroyo-core is installed, also from a clone: configs import its options.proto.
    roots = (sources, Path(arroyo_core.__file__).parent.parent)
    command = [sys.executable, "-m", "grpc_tools.protoc", *(f"-I{root}" for root in roots)]
    command += [f"--python_out={sources}", f"--pyi_out={sources}"]
    command += ["--include_source_info", f"--descriptor_set_out={descriptors}"]
    if subprocess.run([*command, *map(str, protos)], check=False).returncode:
        return MISTAKE
    for path in protos:
        print(f"{path}: compiled")
    print(f"{descriptors}: written")
    return OK
