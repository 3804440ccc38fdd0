"""Every example and every pipeline in the documents is one that `arroyo validate` accepts."""

import re
import subprocess
import sys
from pathlib import Path

from ..example_files import ASKING

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if path not in ASKING)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: They need parameters, or files, tables or servers that their page has first: other tests run them, with these
#: (tests/unit/test_pages.py names them).
RUN_ELSEWHERE = {
    "continuous-files-0",
    "delta-1",
    "delta-2",
    "hooks-0",
    "iceberg-1",
    "iceberg-2",
    "iceberg-3",
    "pipelines-1",
    "pipelines-2",
    "ship-functions-0",
    "trouble-0",
    "trouble-1",
    "untrusted-0",
    "write-a-format-0",
}


def validate(paths):
    command = [str(Path(sys.executable).parent / "arroyo"), "validate", *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def whole_pipelines(document):
    """The YAML blocks that are pipelines, not parts of one."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.match(r"(#.*\n)*name:", block)]


def test_every_example_is_valid():
    assert EXAMPLES
    answer = validate(EXAMPLES)
    assert answer.returncode == 0, answer.stderr


def test_every_pipeline_in_the_documents_is_valid(tmp_path):
    paths = []
    for document in DOCUMENTS:
        for number, pipeline in enumerate(whole_pipelines(document)):
            path = tmp_path / f"{document.stem}-{number}.yaml"
            if path.stem not in RUN_ELSEWHERE:
                path.write_text(pipeline)
                paths.append(path)
    assert any(path.name.startswith("README") for path in paths)
    answer = validate(paths)
    assert answer.returncode == 0, answer.stderr


def test_the_example_of_make_demo_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo = re.search(r"^DEMO := (.*)$", makefile, re.MULTILINE)
    assert demo
    assert (ROOT / demo.group(1)) in EXAMPLES
