"""Every example and every pipeline in the documents is one that `arroyo validate` accepts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def validate(path):
    command = [str(Path(sys.executable).parent / "arroyo"), "validate", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def whole_pipelines(document):
    """The YAML blocks that are pipelines, not parts of one."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.match(r"(#.*\n)*name:", block)]


DOCUMENTED = [
    pytest.param(block, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(whole_pipelines(document))
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_is_valid(example):
    answer = validate(example)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("pipeline", DOCUMENTED)
def test_the_pipeline_in_the_documents_is_valid(pipeline, tmp_path):
    path = tmp_path / "pipeline.yaml"
    path.write_text(pipeline)
    answer = validate(path)
    assert answer.returncode == 0, answer.stderr


def test_the_example_of_make_demo_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo = re.search(r"^DEMO := (.*)$", makefile, re.MULTILINE)
    assert demo
    assert (ROOT / demo.group(1)) in EXAMPLES
