"""The distributions of this repository: the core, `plugins/<dist>` and `udfs/<dist>`.

One definition for the wheels, the tox environments, the pins and the tests: a new folder with a
`pyproject.toml` is picked up by all of them, and nothing else needs an edit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORE = "core"


@dataclass(frozen=True)
class Distribution:
    """One folder that becomes one wheel. `name` is the folder's, and the tox environment's."""

    name: str
    folder: Path

    @cached_property
    def metadata(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def project(self) -> str:
        """The distribution's name on an index."""
        return str(self.metadata["project"]["name"])

    @property
    def version(self) -> str:
        return str(self.metadata["project"]["version"])

    @property
    def wheel_name(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def sources(self) -> Path:
        """The folder that holds the importable packages."""
        return ROOT if self.name == CORE else self.folder / "src"

    @property
    def packages(self) -> tuple[Path, ...]:
        """The folders of the packages in the wheel."""
        if self.name == CORE:
            return (ROOT / "arroyo_core",)
        return tuple(sorted(path.parent for path in self.sources.glob("*/__init__.py")))

    @property
    def forced(self) -> tuple[Path, ...]:
        """Folders outside the packages that the wheel has copies of."""
        targets = self.metadata.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {})
        return tuple(self.folder / path for path in targets.get("wheel", {}).get("force-include", {}))

    @property
    def companions(self) -> set[str]:
        """Distributions of this repository that it needs, or that its tests do; the core apart."""
        if self.name == CORE:
            return set()
        tests = self.metadata.get("dependency-groups", {}).get("test", ())
        wanted = {re.split(r"[^A-Za-z0-9-]", line)[0] for line in (*self.metadata["project"]["dependencies"], *tests)}
        return {name for name in wanted if name.startswith("arroyo-")} - {"arroyo-core"}

    @property
    def requirements(self) -> list[str]:
        """Everything it may ask for, extras included."""
        project = self.metadata["project"]
        extras = project.get("optional-dependencies", {})
        return [*project.get("dependencies", ()), *(line for lines in extras.values() for line in lines)]


def distributions(root: Path = ROOT) -> Sequence[Distribution]:
    """The core first, then plugins and UDFs by name; folders that start with `_` or `.` are not distributions."""
    found = [Distribution(CORE, root)]
    for kind in ("plugins", "udfs"):
        found += [
            Distribution(path.parent.name, path.parent)
            for path in sorted((root / kind).glob("*/pyproject.toml"))
            if not path.parent.name.startswith(("_", "."))
        ]
    return found
