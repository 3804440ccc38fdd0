"""`arroyo fmt`: pipeline files in the canonical layout."""

from __future__ import annotations

import argparse
import difflib
import stat
import sys
import tempfile
from pathlib import Path

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.diagnostics import print_mistake
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.errors import InvalidPipelineError, Location
from arroyo_core.pipeline.languages import Yaml, language_of
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.text import decode
from arroyo_core.pipeline.views.labels import count
from arroyo_core.plugin import installed_plugins
from arroyo_devtools.formatting import format_text

#: Some file is not in the canonical layout.
CHANGED = 1
_STDIN = "-"
_ENDINGS = tuple(ending for ending in Yaml.endings if ending)


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "fmt",
        group=CommandGroup.PIPELINES,
        runs_pipelines=False,
        help="bring pipeline files into the canonical layout",
        description="Bring pipeline files, and files that they include, into the canonical layout. Comments, the order "
        "of nodes and what the files mean stay as they are. Files of other languages, such as SQL, are refused. Exit "
        "code 2 when a file is not YAML; with --check or --diff nothing is written, and the exit code is 1 when a file "
        "would change.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file in YAML; - formats stdin to stdout")
    parser.add_argument("--check", action="store_true", help="only tell which files would change")
    parser.add_argument("--diff", action="store_true", help="only show what would change")
    parser.set_defaults(command=fmt)


def fmt(args: argparse.Namespace) -> int:
    changed = invalid = 0
    for file in args.files:
        try:
            changed += _format_file(file, args)
        except InvalidPipelineError as error:
            invalid += 1
            for mistake in error.errors:
                print_mistake(mistake, is_debug=args.debug)
    is_dry = args.check or args.diff
    if args.files != [_STDIN] or is_dry:
        print(_summary(len(args.files), changed, invalid, is_dry=is_dry), file=sys.stderr)
    if invalid:
        return MISTAKE
    return CHANGED if changed and is_dry else OK


def _format_file(file: str, args: argparse.Namespace) -> bool:
    """Whether the file was not in the canonical layout."""
    shown = "<stdin>" if file == _STDIN else file
    mistakes = Mistakes()
    if not _is_yaml(file):
        # Most of SQL is also a plain text of YAML: it would be written again as one.
        mistakes.add("only YAML has a canonical layout: this file is left as it is", at=Location(file, 1, 1))
        mistakes.raise_if_any()
    data = sys.stdin.buffer.read() if file == _STDIN else _read(file)
    text = decode(data, file=shown, mistakes=mistakes)
    mistakes.raise_if_any()
    formatted = format_text(text or "", file=shown)
    # A byte-order mark and other line breaks are no part of the layout either.
    is_changed = formatted.encode() != data
    if args.diff and is_changed:
        sys.stdout.writelines(_diff(shown, text or "", formatted))
    if args.check and is_changed:
        print(visible(f"would change {shown}"), file=sys.stderr)
    if args.check or args.diff:
        return is_changed
    if file == _STDIN:
        sys.stdout.write(formatted)
    elif is_changed:
        _replace(Path(file), formatted.encode())
        print(visible(f"changed {file}"), file=sys.stderr)
    return is_changed


def _is_yaml(file: str) -> bool:
    """Whether no plugin reads files of this name in another language; tests of pipelines are YAML too."""
    return file.lower().endswith(_ENDINGS) or isinstance(language_of(file, installed_plugins()), Yaml)


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        mistakes = Mistakes()
        mistakes.add(f"cannot read {file}: {error.strerror or error}", at=None, value=file)
        mistakes.raise_if_any()
        raise


def _replace(path: Path, data: bytes) -> None:
    """Write the file whole or not at all: somebody may be running it."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as temporary:
        try:
            temporary.write(data)
            temporary.flush()
            Path(temporary.name).chmod(mode)
            Path(temporary.name).replace(target)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def _diff(file: str, before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), fromfile=file, tofile=f"{file} (canonical)"
    )
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _summary(files: int, changed: int, invalid: int, *, is_dry: bool) -> str:
    parts = [f"{changed} would change" if is_dry else f"{changed} changed"]
    parts += [f"{invalid} not readable"] if invalid else []
    return f"{count(files, 'file')}: {', '.join(parts)}"
