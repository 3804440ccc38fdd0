"""`python -m tests.sql_queries.snapshots`: writes the plans of all examples in SQL again, as YAML.

A plan that changes with DataFusion, or with the planner, shows as a difference of these files.
"""

from __future__ import annotations

import os
from pathlib import Path

from arroyo_sql.render import to_yaml

from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "plugins" / "arroyo-sql" / "tests" / "snapshots"


def examples() -> list[Path]:
    """The scripts of the repository that people read, relative to its root."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / "examples").rglob("*.sql"))


def snapshot_of(example: Path) -> Path:
    return FOLDER / Path(*example.parts[1:]).with_suffix(".yaml")


def compiled(example: Path) -> str:
    """What `arroyo sql compile` writes in the root of the repository, which must be the current folder."""
    pipeline = plan_file(example, plugins=installed_plugins(), environment={})
    return to_yaml(pipeline.written.root, heading=f"The plan of {example.as_posix()}.")


def main() -> None:
    os.chdir(ROOT)
    kept = set()
    for example in examples():
        path = snapshot_of(example)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(compiled(example), encoding="utf-8")
        kept.add(path)
    for path in set(FOLDER.rglob("*.yaml")) - kept:
        path.unlink()
    print(f"{len(kept)} plans written")


if __name__ == "__main__":
    main()
