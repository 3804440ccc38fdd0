"""`arroyo sql compile`, `-q`, and what other commands make of `.sql` files."""

import io
import json

import pytest
from arroyo_testing import run_in_process

from arroyo_core.cli.main import main

SCRIPT = """
SET name = 'evens';
CREATE TABLE i WITH (connector = 'impulse', count = 10, event_time_interval = INTERVAL '1 second');
CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
CREATE VIEW evens AS SELECT counter % 2 AS odd, sum(counter) AS total FROM i
GROUP BY counter % 2, tumble(INTERVAL '5 seconds');
INSERT INTO out SELECT * FROM evens;
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evens.sql"
    path.write_text(SCRIPT)
    return path


def rows(folder):
    found = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return sorted(found, key=json.dumps)


class TestCompile:
    def test_the_yaml_gives_the_same_rows_and_is_in_the_canonical_layout(self, script, tmp_path, capsys):
        assert main(["sql", "compile", str(script), "-o", "evens.yaml"]) == 0
        assert main(["fmt", "--check", "evens.yaml"]) == 0
        run_in_process(script)
        from_sql = rows(tmp_path / "out")
        for file in (tmp_path / "out").glob("*.jsonl"):
            file.unlink()
        run_in_process(tmp_path / "evens.yaml")
        assert rows(tmp_path / "out") == from_sql
        assert len(from_sql) == 4

    def test_dollar_signs_mean_the_same_in_yaml(self, script, tmp_path, capsys):
        script.write_text(
            "CREATE TABLE i WITH (connector = 'impulse', count = 1);\n"
            "CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');\n"
            "INSERT INTO out SELECT '$${x}' AS a, '$$$$' AS b, '$1' AS c FROM i"
        )
        assert main(["sql", "compile", str(script), "-o", "dollars.yaml"]) == 0
        run_in_process(tmp_path / "dollars.yaml")
        assert rows(tmp_path / "out") == [{"a": "${x}", "b": "$$", "c": "$1"}]

    def test_a_wrong_script_is_not_compiled(self, script, capsys):
        script.write_text("SELEC 1")
        assert main(["sql", "compile", str(script)]) == 2
        assert "evens.sql:1:1: expected a statement, not 'SELEC'" in capsys.readouterr().err


class TestQuery:
    QUERY = "CREATE TABLE i WITH (connector = 'impulse', count = 3); SELECT counter * 2 AS twice FROM i"

    def test_a_text_is_run(self, script, capsys):
        assert main(["run", "--in-process", "--progress", "none", "-q", self.QUERY]) == 0
        assert [json.loads(line)["twice"] for line in capsys.readouterr().out.splitlines()] == ["0", "2", "4"]

    @pytest.mark.parametrize("command", ["plan", "graph", "validate"])
    def test_a_text_is_looked_at(self, command, script, capsys):
        assert main([command, "-q", self.QUERY]) == 0
        assert "query" in capsys.readouterr().out

    def test_mistakes_show_the_line_of_the_text(self, script, capsys):
        assert main(["validate", "-q", "SELECT *\nFROM nothing"]) == 2
        assert "query.sql:2:6" in (shown := capsys.readouterr().err)
        assert "  2 | FROM nothing\n" in shown

    def test_another_language_can_be_named(self, script, capsys):
        text = "{name: x, nodes: [{id: a, operator: impulse.source}, {id: b, operator: std.blackhole, inputs: [a]}]}"
        assert main(["validate", "-q", text, "--language", "yaml"]) == 0
        assert main(["validate", "--untrusted", "-q", text, "--language", "yaml"]) == 0

    def test_a_file_or_a_text_is_needed(self, script, capsys):
        with pytest.raises(SystemExit):
            main(["plan"])
        with pytest.raises(SystemExit):
            main(["plan", str(script), "-q", "SELECT 1"])


class TestOtherCommands:
    def test_a_job_is_found_by_its_script(self, script, tmp_path, capsys):
        script.write_text(SCRIPT + "SET checkpoint.url = './state';")
        run_in_process(script)
        assert main(["status", str(script)]) == 0
        assert "evens" in capsys.readouterr().out
        assert main(["ps", str(tmp_path)]) == 0
        assert "evens" in capsys.readouterr().out

    def test_doctor_checks_a_script_and_its_store(self, script, tmp_path, capsys):
        script.write_text(SCRIPT + f"SET checkpoint.url = '{tmp_path / 'state'}';")
        main(["doctor", str(script), "--no-spark", "--format", "json"])
        findings = {each["check"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
        assert findings["pipeline"]["level"] == "ok"
        assert "evens" in findings["pipeline"]["message"]
        assert any(str(tmp_path / "state") in found["message"] for name, found in findings.items() if "store" in name)

    def test_doctor_says_where_a_script_is_wrong(self, script, capsys):
        script.write_text(SCRIPT + "INSERT INTO out SELECT nothing FROM i;")
        assert main(["doctor", str(script), "--no-spark"]) == 1
        shown = capsys.readouterr().out
        assert "evens.sql:8:24: there is no column 'nothing'" in shown
        assert f"-> arroyo validate {script}" in shown

    def test_untrusted_mode_refuses_variables_and_other_folders(self, script, capsys, monkeypatch):
        monkeypatch.setenv("SECRET", "hunter2")
        script.write_text(
            "CREATE TABLE a (x INT) WITH (connector = 'filesystem', type = 'source', path = '/etc/passwd.csv');\n"
            "CREATE TABLE b WITH (connector = 'filesystem', type = 'sink', path = '${SECRET}');\n"
            "INSERT INTO b SELECT x FROM a;"
        )
        assert main(["validate", "--untrusted", str(script)]) == 2
        shown = capsys.readouterr().err
        assert "evens.sql:2:71: untrusted mode refuses to read the variable SECRET" in shown
        assert "hunter2" not in shown
        script.write_text(script.read_text().replace("${SECRET}", "./out"))
        assert main(["validate", "--untrusted", str(script)]) == 2
        assert "evens.sql:1:" in capsys.readouterr().err


class TestPipe:
    def run(self, monkeypatch, text):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return main(["sql"])

    def test_statements_are_run_one_after_the_other(self, script, monkeypatch, capsys):
        text = (
            "CREATE TABLE i WITH (connector = 'impulse', count = 4);\n"
            "CREATE VIEW v AS SELECT counter % 2 AS odd,\n  count(*) AS n FROM i GROUP BY 1;\n"
            "SELECT * FROM v;\n\\d\n\\d v\nSELECT max(n) AS most FROM v;\n"
        )
        assert self.run(monkeypatch, text) == 0
        shown = capsys.readouterr().out
        assert "odd  n\n  0  2\n  1  2\n(2 rows)" in shown
        assert "v     view" in shown
        assert "n       BIGINT" in shown
        assert "most\n   2\n(1 row)" in shown

    def test_it_ends_at_the_first_mistake(self, script, monkeypatch, capsys):
        assert self.run(monkeypatch, "SELECT * FROM nothing;\n\\d\n") == 2
        captured = capsys.readouterr()
        assert "input 1:1:15" in captured.err
        assert captured.out == ""


class TestTests:
    """`arroyo test`, which other distributions bring."""

    CASES = (
        "tests:\n  - name: sums\n    rows:\n      i:\n"
        "        - {counter: 2, subtask_index: 0, timestamp: 2026-01-01T00:00:00Z}\n"
        "        - {counter: 4, subtask_index: 0, timestamp: 2026-01-01T00:00:01Z}\n"
        "    expect:\n      out:\n        - {odd: 0, total: %s}\n"
    )

    @pytest.mark.parametrize("named", ["evens.sql", "evens_test.yaml"])
    def test_the_tests_of_a_script_are_beside_it(self, script, tmp_path, capsys, named):
        (tmp_path / "evens_test.yaml").write_text(self.CASES % 6)
        assert main(["test", named]) == 0
        assert "1 test, all passed" in capsys.readouterr().out

    def test_a_wrong_expectation_is_found(self, script, tmp_path, capsys):
        (tmp_path / "evens_test.yaml").write_text(self.CASES % 7)
        assert main(["test", "evens.sql"]) == 1

    def test_a_script_without_tests_has_none(self, script, capsys):
        main(["test", "evens.sql"])
        printed = capsys.readouterr()
        assert "must be a mapping" not in printed.err
        assert "0 tests" in printed.out or "no tests" in (printed.out + printed.err)
