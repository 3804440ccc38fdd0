"""Renders the templates of `arroyo new`: complete projects, whose names are replaced by others.

The templates are folders of this repository, `plugins/_template`, `plugins/_templates/KIND` and `udfs/_template`, which
are tested like all others; the wheel carries copies of them.
"""

from __future__ import annotations

import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from arroyo_core.errors import ArroyoError, Domain
from arroyo_devtools.generated_code import renamed_descriptors, renamed_module

_PACKAGE = Path(__file__).resolve().parent
_BUILT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "build", "dist", "*.egg-info")
_TEXT = {".py", ".pyi", ".md", ".toml", ".proto", ".ini", ".yaml", ""}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class TemplateError(ArroyoError):
    """A name that cannot be used, or a place where something is already."""

    domain = Domain.USER


class Part(StrEnum):
    """What a distribution can be started with alone; each has a template of its own."""

    SOURCE = "source"
    SINK = "sink"
    OPERATOR = "operator"
    DATABASE = "database"

    @property
    def operators(self) -> tuple[str, ...]:
        """What the template has, by its names after the prefix."""
        return {
            Part.SOURCE: ("feed",),
            Part.SINK: ("ledger",),
            Part.OPERATOR: ("totals",),
            Part.DATABASE: ("sink", "lookup"),
        }[self]


@dataclass(frozen=True, slots=True)
class Names:
    """What a new distribution is called: `arroyo-acme`, its package `arroyo_acme`, and `acme` before its operators."""

    distribution: str
    package: str
    prefix: str


def plugin_names(distribution: str, prefix: str | None = None) -> Names:
    """The names of a plugin; raises `TemplateError` for one that cannot be used."""
    return _names(distribution, prefix, r"^arroyo_", what="plugin", example="arroyo-acme")


def udf_names(distribution: str, prefix: str | None = None) -> Names:
    """The names of a distribution of functions; raises `TemplateError` for one that cannot be used."""
    return _names(distribution, prefix, r"^arroyo_(udf_)?", what="UDF distribution", example="arroyo-udf-acme")


def render_plugin(names: Names, into: Path) -> Path:
    """An operator, a sink and their tests, in a new folder; raises `TemplateError` where there is one already."""

    def apply(text: str) -> str:
        text = text.replace("arroyo-template", names.distribution).replace("arroyo_template", names.package)
        return re.sub(r"\btemplate(?=\.(running_count|sqlite_upsert)| = )", names.prefix, text)

    return _render(_template("plugin", "plugins/_template"), "arroyo_template", names, into, apply)


def render_part(part: Part, names: Names, into: Path) -> Path:
    """What `part` says, with its tests, in a new folder; raises as `render_plugin` does."""
    package = f"arroyo_template_{part}"

    def apply(text: str) -> str:
        text = text.replace(f"arroyo-template-{part}", names.distribution).replace(package, names.package)
        return re.sub(rf"\btemplate(?=\.({'|'.join(part.operators)})\b| = )", names.prefix, text)

    return _render(_template(part, f"plugins/_templates/{part}"), package, names, into, apply)


def render_udf(names: Names, into: Path) -> Path:
    """Functions and their tests, in a new folder; raises `TemplateError` where there is one already."""

    def apply(text: str) -> str:
        text = text.replace("arroyo-udf-template", names.distribution).replace("arroyo_udf_template", names.package)
        text = text.replace("udf_template = ", f"{names.package.removeprefix('arroyo_')} = ")
        return re.sub(r"\btemplate(?=_(initials|share|span)\b)", names.prefix, text)

    return _render(_template("udf", "udfs/_template"), "arroyo_udf_template", names, into, apply)


def render_pipeline(name: str, into: Path) -> Path:
    """A pipeline that runs as it is, with its tests beside it; raises `TemplateError` where one of them is already."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise TemplateError(f"{name!r} is not a name for a pipeline: use letters, digits, '_' and '-', as hot_items")
    made = {_free(into, f"{name}{part}.yaml"): f"pipeline{part}.yaml" for part in ("", "_test")}
    for target, template in made.items():
        text = (_PACKAGE / "templates" / "pipeline" / template).read_text(encoding="utf-8")
        target.write_text(re.sub(r"\btemplate(?=\b|_test\b)", name, text), encoding="utf-8")
    return into / f"{name}.yaml"


def _names(distribution: str, prefix: str | None, cut: str, *, what: str, example: str) -> Names:
    if not _NAME.fullmatch(distribution):
        raise TemplateError(
            f"{distribution!r} is not a name for a {what}: use lower-case words joined by '-', as {example}"
        )
    package = distribution.replace("-", "_")
    if package in sys.stdlib_module_names or keyword.iskeyword(package) or package == "arroyo_core":
        raise TemplateError(
            f"{distribution!r} is not a name for a {what}: the package {package!r} is another's already"
        )
    prefix = prefix or re.sub(cut, "", package)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", prefix):
        raise TemplateError(f"{prefix!r} cannot be a prefix of names: use lower-case letters, digits and '_'")
    return Names(distribution, package, prefix)


def _template(kind: str, folder: str) -> Path:
    """The folder of this repository, or the copy that came with the wheel."""
    beside = _PACKAGE.parents[3] / folder
    found = beside if (beside / "pyproject.toml").is_file() else _PACKAGE / "templates" / kind
    if not found.is_dir():
        raise TemplateError(f"the template of a {kind} is missing from this installation: {found}")
    return found


def _free(into: Path, name: str) -> Path:
    if not into.is_dir():
        raise TemplateError(f"there is no folder {str(into)!r}: make it, or name another with --into")
    target = into / name
    if target.exists():
        raise TemplateError(f"{str(target)!r} is already there: choose another name, or another folder with --into")
    return target


def _render(template: Path, package: str, names: Names, into: Path, apply: Callable[[str], str]) -> Path:
    target = _free(into, names.distribution)
    # Beside its place, so that it appears whole or not at all.
    with tempfile.TemporaryDirectory(dir=into, prefix=f".{names.distribution}-") as folder:
        made = Path(folder) / "made"
        shutil.copytree(template, made, ignore=_BUILT)
        (made / "src" / package).rename(made / "src" / names.package)
        for path in sorted(made.rglob("*")):
            if path.is_file():
                _rewrite(path, apply)
        made.rename(target)
    return target


def _rewrite(path: Path, apply: Callable[[str], str]) -> None:
    if path.name.endswith("_pb2.py"):
        path.write_text(renamed_module(path.read_text(encoding="utf-8"), apply), encoding="utf-8")
    elif path.suffix == ".binpb":
        path.write_bytes(renamed_descriptors(path.read_bytes(), apply))
    elif path.suffix in _TEXT:
        path.write_text(apply(path.read_text(encoding="utf-8")), encoding="utf-8")
