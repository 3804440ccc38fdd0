"""Regenerates every `_pb2.py` and `_pb2.pyi` from its `.proto`, or checks that this would change nothing.

Plugins also get a `descriptors.binpb` with the comments of their protos, which compiled code has not: `arroyo docs`
and `arroyo schema` read them there.

python tools/proto.py [--check]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from distributions import ROOT, distributions

#: What `arroyo new` copies.
TEMPLATES = [ROOT / "plugins" / "_template", *sorted((ROOT / "plugins" / "_templates").iterdir())]


def generate(sources: Path, protos: Sequence[Path], target: Path) -> None:
    """Run the pinned compiler over protos under `sources`; `arroyo_core/proto/options.proto` is on its path."""
    roots = dict.fromkeys((sources, ROOT))
    command = [sys.executable, "-m", "grpc_tools.protoc", *(f"-I{root}" for root in roots)]
    command += [f"--python_out={target}", f"--pyi_out={target}"]
    if sources != ROOT:
        # The package of the distribution is the folder above all its protos.
        package = target / protos[0].relative_to(sources).parts[0]
        package.mkdir(exist_ok=True)
        command += ["--include_source_info", f"--descriptor_set_out={package / 'descriptors.binpb'}"]
    subprocess.run([*command, *map(str, protos)], check=True)


def regenerated(sources: Path) -> Mapping[Path, bytes]:
    """What the generated files under `sources` should hold, by path."""
    package_roots = [ROOT / "arroyo_core"] if sources == ROOT else [sources]
    protos = sorted(path for root in package_roots for path in root.rglob("*.proto"))
    if not protos:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        generate(sources, protos, Path(folder))
        made = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {sources / path.relative_to(folder): path.read_bytes() for path in made}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is out of date")
    arguments = parser.parse_args()
    wanted: dict[Path, bytes] = {}
    for sources in (
        *(distribution.sources for distribution in distributions()),
        *(template / "src" for template in TEMPLATES),
    ):
        wanted |= regenerated(sources)
    stale = [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        shown = path.relative_to(ROOT)
        if arguments.check:
            print(f"{shown} does not match its .proto: run 'make proto' and commit the result", file=sys.stderr)
        else:
            path.write_bytes(wanted[path])
            print(f"wrote {shown}")
    print(f"{len(wanted)} generated files, {len(stale)} out of date")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
