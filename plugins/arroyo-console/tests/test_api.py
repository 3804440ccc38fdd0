"""The API in this process: what each operation gives and refuses, and that no answer has a secret."""

from __future__ import annotations

import json

import pytest
from arroyo_console.api.app import make_app
from arroyo_console.safety.access import AccessRules
from arroyo_console.safety.tokens import Tokens
from arroyo_console.values import Role
from starlette.testclient import TestClient

from .support.serving import console_in, end_jobs, wait_for
from .support.texts import BROKEN, bounded, paced

WRITE, READ = "w" * 30, "r" * 30
SECRET = "hunter2-of-the-warehouse"


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    return console_in(tmp_path_factory.mktemp("console") / "data")


@pytest.fixture(scope="module")
def client(console):
    app = make_app(console, AccessRules(), has_pages=False)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client
        end_jobs(console)


@pytest.fixture(scope="module")
def running(client):
    answer = client.post("/v1/pipelines", json={"query": paced("running"), "language": "yaml"})
    assert answer.status_code == 201, answer.text
    job_id = answer.json()["job"]["id"]
    wait_for(lambda: (client.get(f"/v1/jobs/{job_id}").json()["summary"]["epoch"] or 0) >= 3)
    return answer.json()


def test_ping_and_info(client):
    assert client.get("/v1/ping").json() == {"pong": "arroyo-console"}
    info = client.get("/v1/info").json()
    assert (info["is_supervisor"], info["allows_code"], info["master"]) == (True, False, "in process")


def test_mistakes_of_a_text_have_places_and_suggestions(client):
    answer = client.post("/v1/pipelines/validate_query", json={"query": BROKEN, "language": "yaml"})
    (problem,) = answer.json()["problems"]
    assert (problem["line"], problem["column"], problem["suggestion"]) == (4, 15, "nexmark.source")
    answer = client.post("/v1/pipelines", json={"query": BROKEN, "language": "yaml"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["problems"] == [problem]


def test_a_text_in_sql_has_a_graph(client):
    query = """
        CREATE TABLE bids (auction BIGINT, price BIGINT) WITH (connector = 'nexmark', type = 'source', table = 'bid');
        SELECT auction, price FROM bids WHERE price > 100;
    """
    graph = client.post("/v1/pipelines/graph", json={"query": query}).json()
    if graph["problems"]:
        pytest.fail(str(graph["problems"]))
    assert graph["edges"]
    assert {chain["id"] for chain in graph["chains"]} == {node["chain"] for node in graph["nodes"]}


def test_code_and_files_of_others_are_not_looked_at(client, tmp_path):
    (tmp_path / "secret.yaml").write_text("inside: yes\n")
    query = f"name: x\nnodes: !include {tmp_path}/secret.yaml\n"
    (problem,) = client.post("/v1/pipelines/validate_query", json={"query": query, "language": "yaml"}).json()[
        "problems"
    ]
    assert "untrusted mode refuses" in problem["message"]
    assert problem["is_refusal"]


def test_a_preview_shows_rows_and_writes_nothing(client, tmp_path):
    out = tmp_path / "out"
    body = {"query": bounded("sample", path=str(out)), "language": "yaml", "rows": 5, "seconds": 5}
    preview = client.post("/v1/pipelines/preview", json=body).json()
    assert (preview["problems"], preview["error"]) == ([], "")
    rows = {node["node"]: node["rows"] for node in preview["nodes"]}
    assert len(rows["bids"]) == len(rows["out"]) == 5
    assert {"auction", "price"} <= set(rows["bids"][0])
    assert not out.exists()
    one = client.post("/v1/pipelines/preview", json={**body, "node": "out"}).json()
    assert [node["node"] for node in one["nodes"]] == ["out"]
    assert "no node 'outt'" in client.post("/v1/pipelines/preview", json={**body, "node": "outt"}).json()["error"]


def test_a_running_job_shows_all_that_it_does(client, running):
    base = f"/v1/jobs/{running['job']['id']}"
    metrics = client.get(f"{base}/metrics").json()
    nodes = {each["node"]: each for each in metrics["operators"]}
    assert nodes["bids"]["rows_out"] > 0
    assert nodes["bids"]["subtasks"][0]["rows_out"] == nodes["bids"]["rows_out"]
    assert [point["epoch"] for point in metrics["history"]] == sorted(point["epoch"] for point in metrics["history"])
    assert client.get(f"{base}/operator_metric_groups").json()
    checkpoints = client.get(f"{base}/checkpoints").json()
    epoch = checkpoints[0]["epoch"]
    one = client.get(f"{base}/checkpoints/{epoch}").json()
    counts = next(each for each in one["operators"] if each["node"] == "counts")
    assert counts["tables"] == ["a", "t"]
    assert counts["files_written"] + counts["files_reused"] > 0
    assert any("epoch" in line for line in client.get(f"{base}/log").json()["lines"])
    assert client.get(f"{base}/errors").json() == []
    assert client.get(f"{base}/dead_letters").json() == []
    graph = client.get(f"{base}/graph").json()
    assert [node["id"] for node in graph["nodes"] if node["is_source"]] == ["bids"]


def test_state_is_read_by_key_and_compared_between_epochs(client, running):
    base = f"/v1/jobs/{running['job']['id']}/state"
    assert {(each["node"], each["table"]) for each in client.get(base).json()} >= {("counts", "a"), ("bids", "s")}
    rows = client.get(f"{base}/counts/a", params={"limit": 3}).json()
    key = rows["rows"][0]["channel"]
    found = client.get(f"{base}/counts/a", params={"key": key}).json()
    assert [row["channel"] for row in found["rows"]] == [key]
    changes = client.get(f"{base}/counts/a/difference").json()
    assert changes["before_epoch"] == changes["epoch"] - 1
    assert {row["_change"] for row in changes["rows"]} <= {"+", "-"}
    missing = client.get(f"{base}/counts/zz")
    assert missing.status_code == 404
    assert "counts.a" in missing.json()["allowed"]


def test_output_comes_as_events(client, running):
    path = f"/v1/jobs/{running['job']['id']}/output"
    with client.stream("GET", path, params={"lines": 5, "follow": False}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join(answer.iter_text())
    rows = [
        json.loads(json.loads(line.removeprefix("data: "))) for line in text.splitlines() if line.startswith('data: "')
    ]
    assert {"channel", "n"} <= set(rows[0])
    assert text.rstrip().endswith("data: {}")


def test_names_are_taken_once_and_lists_have_pages(client, running):
    again = client.post("/v1/pipelines", json={"query": paced("running"), "language": "yaml"})
    assert (again.status_code, again.json()["where"]) == (409, "name")
    other = client.post("/v1/pipelines", json={"query": paced("other"), "language": "yaml", "start": False}).json()
    first = client.get("/v1/pipelines", params={"limit": 1}).json()
    second = client.get("/v1/pipelines", params={"limit": 1, "after": first["next"]}).json()
    assert first["items"][0]["name"] == "other"
    assert second["items"][0]["id"] != other["id"]
    assert client.get("/v1/pipelines", params={"search": "OTH"}).json()["total"] == 1
    assert client.get(f"/v1/pipelines/{other['id']}/jobs").json()[0]["state"] == "created"
    changed = client.patch(f"/v1/pipelines/{other['id']}", json={"query": paced("renamed"), "language": "yaml"}).json()
    assert (changed["name"], changed["version"]) == ("renamed", 2)
    assert [each["version"] for each in client.get(f"/v1/pipelines/{other['id']}/versions").json()] == [2, 1]
    assert client.delete(f"/v1/pipelines/{other['id']}").status_code == 204
    assert client.get(f"/v1/pipelines/{other['id']}").status_code == 404


def test_a_job_that_runs_cannot_be_deleted(client, running):
    answer = client.delete(f"/v1/pipelines/{running['id']}")
    assert (answer.status_code, "stop it first" in answer.json()["detail"]) == (409, True)


def test_what_is_installed_is_described(client):
    names = {each["name"]: each["kind"] for each in client.get("/v1/connectors").json()}
    assert (names["nexmark.source"], names["std.filter"], names["filesystem.sink"]) == ("source", "operator", "sink")
    one = client.get("/v1/connectors/std.filter").json()
    assert one["schema"]["properties"]["predicate"]
    assert [each["name"] for each in one["settings"]]
    assert client.get("/v1/connectors/std.filtre").json()["allowed"] == ["std.filter"]
    assert any(each["distribution"] == "arroyo-console" for each in client.get("/v1/plugins").json())
    assert client.get("/v1/schema").json()["properties"]["nodes"]
    assert client.get("/v1/udfs").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/..%2F..%2Fetc%2Fpasswd",
        "/v1/jobs/..%2F..%2Fetc%2Fpasswd/log",
        "/v1/jobs/%2e%2e/log",
        "/v1/jobs/job_0000000000000000000g/log",
        "/v1/pipelines/%00",
        "/v1/pipelines/pl_00000000000000000000%0a",
        "/v1/connectors/..%2f..%2fsecret",
    ],
)
def test_tricks_with_paths_find_nothing(client, path):
    answer = client.get(path)
    assert answer.status_code in (404, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("trick", ["..%2F..%2Ftoken", "%2Fetc%2Fpasswd", "..a", "a%2Fb"])
def test_names_of_tables_are_no_paths(client, running, trick):
    answer = client.get(f"/v1/jobs/{running['job']['id']}/state/counts/{trick}")
    assert answer.status_code == 404, answer.text


def test_bodies_with_unknown_fields_and_large_ones_are_refused(client):
    answer = client.post("/v1/pipelines/validate_query", json={"query": "x", "langauge": "yaml"})
    assert (answer.status_code, answer.json()["where"]) == (422, "langauge")
    answer = client.post("/v1/pipelines/validate_query", content=b"x" * (9 * 2**20))
    assert answer.status_code == 413
    answer = client.post("/v1/pipelines/validate_query", json={"query": "x" * (5 * 2**20), "language": "yaml"})
    assert (answer.status_code, "too many" in answer.json()["detail"]) == (400, True)


def test_secrets_in_clear_are_refused_and_not_repeated(client):
    text = bounded("leaky", path=f"s3://me:{SECRET}@bucket/out")
    answer = client.post("/v1/pipelines", json={"query": text, "language": "yaml"})
    assert answer.status_code == 422
    assert SECRET not in answer.text
    assert any("in clear" in problem["message"] for problem in answer.json()["problems"])
    for path in ("validate_query", "graph", "preview"):
        assert SECRET not in client.post(f"/v1/pipelines/{path}", json={"query": text, "language": "yaml"}).text


def test_no_answer_has_a_secret_of_the_environment(console, client, running, monkeypatch):
    """Every operation that reads is asked, with a log and an error that have secrets in them."""
    folder = console._folders.run(running["job"]["id"], 1)
    with (folder / "log.txt").open("a") as log:
        log.write(f"cannot reach postgresql://me:{SECRET}@host/db\nurl?password={SECRET}\n")
    line = {"at_us": 1, "message": f"s3://key:{SECRET}@bucket", "traceback": f"token={SECRET}"}
    (folder / "errors.jsonl").write_text(json.dumps(line) + "\n")
    document = client.get("/v1/openapi.json").json()
    values = {"pipeline_id": running["id"], "job_id": running["job"]["id"], "epoch": "2"}
    values |= {"node": "counts", "table": "a", "name": "std.filter"}
    asked = 0
    for path, operations in document["paths"].items():
        if "get" not in operations or path.endswith(("/output", "/doctor")):
            continue
        answer = client.get(path.format(**values))
        assert answer.status_code < 500, (path, answer.text)
        assert SECRET not in answer.text, path
        asked += 1
    assert asked > 20
    assert "***" in client.get(f"/v1/jobs/{running['job']['id']}/log").text
    assert "***" in client.get(f"/v1/jobs/{running['job']['id']}/errors").text
    (folder / "errors.jsonl").unlink()


# Access


@pytest.fixture
def guarded(console):
    rules = AccessRules(host="0.0.0.0", tokens=Tokens.of({Role.WRITE: WRITE, Role.READ: READ}))
    # Its jobs are supervised by the other client's application.
    return TestClient(make_app(console, rules, has_pages=False), base_url="http://jobs.acme")


def test_nobody_unknown_reads_anything_but_whether_the_server_is_there(guarded):
    assert guarded.get("/v1/ping").status_code == 200
    values = dict.fromkeys(("pipeline_id", "job_id", "epoch", "node", "table", "name"), "1")
    document = guarded.get("/v1/openapi.json", headers={"authorization": f"Bearer {READ}"}).json()
    for path, operations in document["paths"].items():
        for method in operations:
            if path in ("/v1/ping", "/v1/session"):
                continue
            answer = guarded.request(method, path.format(**values))
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.get("/v1/openapi.json").status_code == 401
    assert guarded.get("/anything").status_code == 401


def test_who_may_read_may_not_change_or_run(guarded, running, client):
    headers = {"authorization": f"Bearer {READ}"}
    assert guarded.get("/v1/pipelines", headers=headers).status_code == 200
    text = {"query": paced("mine"), "language": "yaml"}
    for method, path, body in (
        ("POST", "/v1/pipelines", text),
        ("POST", "/v1/pipelines/preview", text),
        ("PATCH", f"/v1/pipelines/{running['id']}", {"stop": "kill"}),
        ("POST", f"/v1/pipelines/{running['id']}/restart", {}),
        ("DELETE", f"/v1/pipelines/{running['id']}", None),
        ("POST", f"/v1/jobs/{running['job']['id']}/dead_letters/replay", {}),
    ):
        answer = guarded.request(method, path, headers=headers, json=body)
        assert (answer.status_code, "may read" in answer.json()["detail"]) == (403, True), path


def test_a_browser_logs_in_with_the_token(guarded):
    page = guarded.get("/", headers={"accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert guarded.post("/login", data={"token": "wrong"}).status_code == 401
    answer = guarded.post("/login", data={"token": WRITE}, follow_redirects=False)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    session = guarded.get("/v1/session").json()
    assert session["role"] == "write"
    body = {"query": BROKEN, "language": "yaml"}
    assert guarded.post("/v1/pipelines", json=body).status_code == 403
    assert guarded.post("/v1/pipelines", json=body, headers={"x-csrf-token": session["csrf"]}).status_code == 422
    assert guarded.post("/v1/pipelines", json=body, headers={"origin": "http://evil.example"}).status_code == 403
    assert guarded.delete("/v1/session", headers={"x-csrf-token": session["csrf"]}).status_code == 204
    assert guarded.get("/v1/pipelines").status_code == 401


def test_answers_are_not_kept_framed_or_guessed_at(client):
    headers = client.get("/v1/pipelines").headers
    assert (headers["cache-control"], headers["x-frame-options"]) == ("no-store", "DENY")
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
