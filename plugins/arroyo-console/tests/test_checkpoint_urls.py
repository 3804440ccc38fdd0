from __future__ import annotations

import pytest
import yaml
from arroyo_console.checkpoint_urls import with_checkpoint_url
from arroyo_console.values import Language

URL = "/data/it's here"


@pytest.mark.parametrize(
    "text",
    [
        "name: a\nnodes: []\n",
        "# a comment\nname: a\ncheckpoint: {interval: 1s}\nnodes: []\n",
        "name: a\ncheckpoint: {}\nnodes: []\n",
        "name: a\ncheckpoint:\n  interval: 1s\n  keep: 3\nnodes: []\n",
        "name: a\ncheckpoint:\nnodes: []\n",
        "{name: a, nodes: []}",
        "{name: a, checkpoint: {keep: 3}, nodes: []}",
        "  name: a\n  nodes: []\n",
    ],
)
def test_a_url_is_added_to_yaml_and_nothing_else_changes(text):
    before, after = yaml.safe_load(text), yaml.safe_load(with_checkpoint_url(text, Language.YAML, URL))
    assert after["checkpoint"].pop("url") == URL
    assert after["checkpoint"] == (before.pop("checkpoint", None) or {})
    del after["checkpoint"]
    assert after == before


def test_a_url_is_added_to_sql_on_the_first_line():
    text = "CREATE TABLE a (x INT);\nSELECT x FROM a"
    added = with_checkpoint_url(text, Language.SQL, URL)
    assert added.startswith("SET checkpoint.url = '/data/it''s here'; CREATE TABLE")
    assert len(added.splitlines()) == 2


def test_what_is_not_a_mapping_is_refused():
    with pytest.raises(ValueError, match="not a mapping"):
        with_checkpoint_url("- a", Language.YAML, URL)
