"""A pipeline built in Python plans as its file does, and the file made of it does so, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core import Pipeline, Stream
from arroyo_core.errors import Location
from arroyo_core.pipeline import plan_file, plan_text
from arroyo_core.pipeline.builder.documents import DocumentWriter
from arroyo_core.pipeline.builder.places import CallSite
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.rendering import render_document
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.wellknown import plain
from arroyo_core.plugin import installed_plugins
from tests.example_files import planned_anywhere

ROOT = Path(__file__).parents[4]
EXAMPLES = planned_anywhere()
ENVIRONMENT = {"KAFKA": "broker:9092", "BROKERS": "broker:9092"}


def built(document: dict[str, Any], environment: dict[str, str]) -> Pipeline:
    """The same pipeline, declared call by call."""
    streams: dict[str, Stream] = {}
    nodes = {node["id"]: node for node in document["nodes"]}

    def stream(reference: str) -> Stream:
        name, _, output = reference.partition(".")
        if name not in streams:
            node = nodes[name]
            keys = {key: node[key] for key in ("id", "was", "parallelism") if key in node}
            inputs = [stream(each) for each in node.get("inputs", ())]
            # `as` is a word of Python's, but not as the name of an argument that is unpacked.
            first, others = (inputs[0].apply, inputs[1:]) if inputs else (Stream.source, [])
            streams[name] = first(node["operator"], *others, **keys, **_texts(node.get("config", {})))
        return streams[name].output(output) if output else streams[name]

    read = {each.partition(".")[0] for node in nodes.values() for each in node.get("inputs", ())}
    ends = [stream(name) for name in nodes if name not in read]
    own = {key: document[key] for key in ("parallelism", "checkpoint", "udfs", "execution") if key in document}
    return Pipeline.build(*ends, name=document["name"], environment=environment, **own)


def _texts(config: dict[Any, Any]) -> dict[str, Any]:
    """PyYAML takes the key `on` for a boolean."""
    return {"on" if key is True else key: value for key, value in config.items()}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_an_example_plans_the_same_from_python_and_from_its_own_yaml(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    plugins = installed_plugins()
    planned = plan_file(path, plugins=plugins, environment=ENVIRONMENT)
    pipeline = built(yaml.safe_load(path.read_text()), ENVIRONMENT)
    assert pipeline.plan == planned.plan
    assert plan_text(pipeline.to_yaml(), plugins=plugins, environment=ENVIRONMENT) == planned.plan
    assert plan_text(render_document(planned.written.root), plugins=plugins, environment=ENVIRONMENT) == planned.plan


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="$"))
    | st.sampled_from(
        ["1e5", "null", "~", "yes", "010", "0x1F", "1_000", "<<", "=", "- a", "a: b", "#", "", " ", "2020-01-01"]
    )
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), inner)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(value=_VALUES)
def test_any_value_means_the_same_in_the_file_that_is_made_of_it(value: object) -> None:
    mistakes = Mistakes()
    environment = Environment({})
    site = CallSite(at=Location("program.py", 1, 1), source="")
    document = DocumentWriter(References(environment), mistakes).value({"config": value}, site=site, what="value")
    text = render_document(document)
    read = load_document(text, file="made.yaml", environment=environment, mistakes=mistakes)
    mistakes.raise_if_any()
    assert read is not None
    assert plain(read) == {"config": value}
