"""`.sql` files as pipelines, from the file to the plan."""

import os

import pytest

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins

IMPULSE = "CREATE TABLE i WITH (connector = 'impulse', count = 10);\n"
OUT = "CREATE TABLE out WITH (connector = 'blackhole');\n"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def plan(text, name="q.sql", **planning):
        (tmp_path / name).write_text(text)
        planning.setdefault("environment", {})
        return plan_file(name, plugins=installed_plugins(), **planning)

    return plan


def mistakes(plan, text, **planning):
    with pytest.raises(InvalidPipelineError) as raised:
        plan(text, **planning)
    return [f"{error.at.line}:{error.at.column} {error.message}" for error in raised.value.errors]


class TestSettings:
    def test_a_pipeline_is_named_after_its_file(self, plan):
        assert plan(IMPULSE + "SELECT * FROM i", name="my counts.sql").plan.job_id == "my_counts"

    def test_settings_are_keys_of_the_pipeline(self, plan):
        found = plan(
            "SET name = 'counts'; SET parallelism = 3; SET 'checkpoint.interval' = '1 minute 30 seconds';"
            "SET checkpoint.keep = 2;" + IMPULSE + "SELECT * FROM i"
        ).plan
        assert (found.job_id, found.nodes["i"].parallelism) == ("counts", 3)
        assert (found.checkpoint.interval_ms, found.checkpoint.keep) == (90_000, 2)

    def test_a_wrong_setting_has_its_place(self, plan):
        assert mistakes(plan, "SET paralelism = 1;\nSET parallelism = 0;" + IMPULSE + "SELECT * FROM i") == [
            "1:5 there is no setting 'paralelism'",
            "2:19 'parallelism' must be between 1 and 4096",
        ]

    def test_a_setting_is_set_once(self, plan):
        found = mistakes(plan, "SET name = 'a';\nSET name = 'b';" + IMPULSE + "SELECT * FROM i")
        assert found == ["2:5 'name' is set twice: first in line 1, column 5"]

    def test_former_names_keep_state(self, plan):
        text = IMPULSE + "SET was.busy = 'counted';\nCREATE TABLE busy WITH (connector = 'blackhole');\n"
        found = plan(text + "INSERT INTO busy SELECT counter FROM i").plan
        assert found.nodes["busy"].was == "counted"

    def test_a_former_name_is_of_something_that_is_there(self, plan):
        found = mistakes(plan, IMPULSE + "SET was.bsy = 'counted';\nSELECT counter FROM i")
        assert found == ["2:5 'was.bsy': no view, table or node is called 'bsy'"]


class TestParameters:
    TEXT = "SET parameters.least = 3;\n" + IMPULSE + "SELECT counter FROM i WHERE counter >= ${least}"

    def predicate(self, planned):
        (node,) = (node for node in planned.plan.nodes.values() if node.operator == "std.filter")
        return node.config.decode(errors="replace")

    def test_a_parameter_has_its_default_or_what_is_given(self, plan):
        assert "counter >= 3" in self.predicate(plan(self.TEXT))
        assert "counter >= 7" in self.predicate(plan(self.TEXT, parameters={"least": "7"}))

    def test_a_value_of_another_type_is_refused(self, plan):
        found = mistakes(plan, self.TEXT, parameters={"least": "many"})
        assert found == ["1:5 the value given for parameter 'least' must be a whole number, not the string 'many'"]

    def test_a_parameter_may_need_a_value(self, plan):
        text = "SET parameters.count.type = 'int';\nCREATE TABLE i WITH (connector = 'impulse', count = '${count}');"
        found = mistakes(plan, text + "SELECT * FROM i")
        assert found[0].startswith("1:5 parameter 'count' has no default and needs a value: --set count=VALUE")
        assert plan(text + "SELECT * FROM i", parameters={"count": 4}).plan.nodes["i"]


class TestSecrets:
    def test_values_of_the_environment_are_neither_shown_nor_written(self, plan):
        text = (
            IMPULSE + OUT + "INSERT INTO out SELECT 'sesame-open' AS a, '${SECRET}' AS b FROM i;\n"
            "CREATE TABLE f WITH (connector = 'filesystem', type = 'sink', path = '${FOLDER}/x');\n"
            "INSERT INTO f SELECT counter FROM i"
        )
        planned = plan(text, environment={"SECRET": "hunter2hunter2", "FOLDER": "/data/private"})
        from arroyo_sql.render import to_yaml

        written = to_yaml(planned.written.root, heading="x")
        assert "hunter2" not in written
        assert "/data/private" not in written
        assert "${SECRET}" in written
        assert "${FOLDER}/x" in written

    def test_a_variable_that_is_not_set_is_a_mistake(self, plan):
        found = mistakes(plan, IMPULSE + "SELECT '${NONE}' AS a FROM i")
        assert found[0].startswith("2:9 environment variable NONE is not set")


class TestPlaces:
    def test_mistakes_of_operators_point_into_the_script(self, plan):
        text = "CREATE TABLE f WITH (connector = 'filesystem', type = 'source',\n  path = './none/*.csv');\n"
        (found,) = mistakes(plan, text + "SELECT * FROM f")
        assert found.startswith("2:10 ")

    def test_an_unknown_table_has_the_place_of_its_name(self, plan):
        (found,) = mistakes(plan, IMPULSE + "SELECT *\nFROM bids")
        assert found.startswith("3:6 ")

    def test_comments_are_told_to_lint(self):
        from arroyo_sql.language import Sql

        text = "-- one\nSELECT '--' /* two */"
        assert list(Sql().comments(text)) == [(1, 1, "-- one"), (2, 13, "/* two */")]


class TestBundles:
    def test_an_unknown_bundle_has_its_place(self, plan):
        from arroyo_core.runtime.user_code import BundleOpener

        text = IMPULSE + "CREATE FUNCTION f FROM './none.whl';\nSELECT f(counter) FROM i"
        (found,) = mistakes(plan, text, bundles=BundleOpener(), environment=os.environ)
        assert found.startswith("2:24 ")
