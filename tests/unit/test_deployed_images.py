"""The container file and the manifest of the Spark operator, as far as they can be checked without either."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from arroyo_core.cli.main import _parser
from arroyo_core.pipeline.planner import plan_text
from arroyo_core.plugin import installed_plugins

from ..document_pages import ROOT

pytestmark = pytest.mark.once

CONTAINER = ROOT / "deploy/container/Containerfile"
ENTRYPOINT = ROOT / "deploy/container/entrypoint.sh"
MANIFEST = ROOT / "deploy/kubernetes/spark-application.yaml"
JOB = ROOT / "deploy/kubernetes/job.yaml"
PAGE = ROOT / "docs/on-kubernetes.md"

#: What a container file may say.
INSTRUCTIONS = {"ARG", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"}
#: The Python of a release of Debian, which is the only one that it has. https://packages.debian.org/python3
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, without comments, on one line."""
    lines = [line for line in CONTAINER.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in found]


def arguments_of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def image() -> str:
    return dict(re.findall(r"(\w+)=(\S+)", arguments_of("ARG")[0]))["DEBIAN_IMAGE"]


def image_python() -> str:
    """The minor version of Python in the image; `KeyError` for a Debian that is not known here."""
    return PYTHONS[re.fullmatch(r"debian:(\w+)-slim", image())[1]]


def variables() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(arguments_of("ENV"))))


def test_a_container_file_begins_with_its_image_and_ends_as_a_user_without_rights():
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    assert [name for name, _ in found][:2] == ["ARG", "FROM"]
    assert found[1] == ("FROM", "${DEBIAN_IMAGE}")
    assert found[-2] == ("USER", "185")
    (accounts,) = (rest for rest in arguments_of("RUN") if "useradd" in rest)
    assert "useradd --system --uid 185 " in accounts


def test_the_python_of_the_image_is_one_that_runs_arroyo():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert image_python() in SpecifierSet(project["requires-python"])
    major, minor = project["requires-python"].removeprefix(">=").split(".")
    assert f"sys.exit(sys.version_info < ({major}, {minor}))" in arguments_of("RUN")[0]


def test_the_page_names_what_the_image_is_made_of():
    page = PAGE.read_text(encoding="utf-8")
    release = pinned("pyspark")
    for part in (image(), f"Python {image_python()}", f"Spark {release}", "openjdk-17-jre-headless"):
        assert part in page, part
    assert any("openjdk-17-jre-headless" in rest for rest in arguments_of("RUN"))


def pinned(name: str) -> str:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return re.search(rf"^{name}==(\S+)", pins, re.M)[1]


def test_what_is_copied_is_in_the_repository_or_made_by_make_wheels():
    sources = [word for rest in arguments_of("COPY") for word in rest.split()[:-1]]
    assert sources == ["constraints.txt", "dist/*.whl", "deploy/container/entrypoint.sh"]
    assert (ROOT / "constraints.txt").is_file()
    assert ENTRYPOINT.is_file()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^wheels:.*\n\t@?.*tools/wheels\.py", makefile, re.M)
    assert 'DIST = ROOT / "dist"' in (ROOT / "tools/wheels.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", arguments_of("RUN"))
def test_a_shell_takes_each_command(command):
    shell = shutil.which("dash") or "/bin/sh"
    done = subprocess.run([shell, "-n", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["uv", "pyspark"])
def test_a_pin_is_found_with_its_hashes(name, tmp_path):
    (command,) = (rest for rest in arguments_of("RUN") if rest.startswith(f"sed -n '/^{name}=="))
    script = command.partition(" > ")[0].replace("/tmp/arroyo/", f"{ROOT}/")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    first, *hashes = done.stdout.splitlines()
    assert first.startswith(f"{name}=={pinned(name)}")
    assert hashes
    assert all(line.strip().startswith("--hash=sha256:") for line in hashes)
    assert "--require-hashes" in command


def test_everything_that_is_installed_is_pinned():
    (command,) = (rest for rest in arguments_of("RUN") if "/tmp/arroyo/*.whl" in rest)
    assert "--constraint /tmp/arroyo/constraints.txt" in command
    assert "--no-build" in command.split()
    for name in ("pyspark", "s3fs", "pandas"):
        assert name in command.split()
        assert pinned(name)


def manifest() -> tuple[dict[str, str], dict[str, object]]:
    config, application = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    return config, application


def test_the_operator_runs_a_command_that_there_is_on_a_pipeline_that_is_valid():
    config, application = manifest()
    spec = application["spec"]
    arguments = spec["arguments"]
    args = _parser(arguments).parse_args(arguments)
    (path,) = args.files
    (mounted,) = spec["driver"]["configMaps"]
    assert mounted["name"] == config["metadata"]["name"]
    folder, _, name = path.rpartition("/")
    assert folder == mounted["path"]
    plan = plan_text(config["data"][name], file=name, plugins=installed_plugins(), environment={})
    assert plan.job_id == application["metadata"]["name"]


def test_the_operator_runs_what_the_image_has():
    _, application = manifest()
    spec = application["spec"]
    assert spec["sparkConf"]["spark.pyspark.python"] == variables()["PYSPARK_PYTHON"] == "/opt/arroyo/bin/python"
    packages = f"/opt/arroyo/lib/python{image_python()}/site-packages"
    assert spec["mainApplicationFile"] == f"local://{packages}/arroyo_core/__main__.py"
    assert (ROOT / "arroyo_core/__main__.py").is_file()
    assert spec["sparkVersion"] == pinned("pyspark")
    assert spec["image"] in PAGE.read_text(encoding="utf-8")


def test_a_pod_runs_as_the_user_that_the_image_has_a_name_for():
    """Hadoop does not log in a user without a name."""
    documents = {item["kind"]: item for item in yaml.safe_load_all(JOB.read_text(encoding="utf-8"))}
    (container,) = documents["Job"]["spec"]["template"]["spec"]["containers"]
    assert str(container["securityContext"]["runAsUser"]) == arguments_of("USER")[-1]
    _, application = manifest()
    assert container["image"] == application["spec"]["image"]


def start(folder: Path, *arguments: str, **environment: str) -> list[str]:
    """The words that the entry point ends as, with programs that print theirs."""
    for name in ("bin/spark-submit", "java"):
        program = folder / name
        program.parent.mkdir(exist_ok=True)
        program.write_text('#!/bin/sh\nprintf \'%s\\n\' "$0" "$@"\n')
        program.chmod(0o755)
    environment |= {"PATH": f"{folder}:/usr/bin:/bin", "SPARK_HOME": str(folder)}
    command = ["bash", str(ENTRYPOINT), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_entry_point_is_the_last_word_of_the_image_and_is_started_by_tini():
    name, words = instructions()[-1]
    assert name == "ENTRYPOINT"
    assert json.loads(words) == ["/usr/bin/tini", "-s", "--", "/opt/arroyo/entrypoint.sh"]
    (packages,) = (rest for rest in arguments_of("RUN") if "apt-get install" in rest)
    assert {"tini", "bash"} <= set(packages.split())
    assert ("COPY", "deploy/container/entrypoint.sh /opt/arroyo/") in instructions()


def test_the_entry_point_starts_a_driver_as_kubernetes_asks_it(tmp_path):
    found = start(tmp_path, "driver", "--class", "a.B", "local:///x.py", "a word", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")
    assert found == [
        f"{tmp_path}/bin/spark-submit",
        *("--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.7"),
        *("--class", "a.B", "local:///x.py", "a word"),
    ]


EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_CONF_DIR": "/opt/spark/conf",
}


def test_the_entry_point_starts_an_executor_with_its_options_in_their_order(tmp_path):
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number} x" for number in range(11)}
    found = start(tmp_path, "executor", **EXECUTOR, **options, SPARK_EXTRA_CLASSPATH="/more/*")
    assert found == [
        f"{tmp_path}/java",
        *(f"-Dn={number} x" for number in range(11)),
        *("-Xms2g", "-Xmx2g", "-cp", f"/opt/spark/conf:{tmp_path}/jars/*:/more/*"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@driver:7078", "--executor-id", "3", "--cores", "2"),
        *("--app-id", "spark-1", "--hostname", "10.0.0.9", "--resourceProfileId", "0", "--podName", "orders-exec-3"),
    ]


def test_the_entry_point_names_what_an_executor_is_not_told(tmp_path):
    lacking = {name: value for name, value in EXECUTOR.items() if name != "SPARK_EXECUTOR_MEMORY"}
    with pytest.raises(subprocess.CalledProcessError) as caught:
        start(tmp_path, "executor", **lacking)
    assert "SPARK_EXECUTOR_MEMORY" in caught.value.stderr


def test_the_entry_point_runs_any_other_command(tmp_path):
    assert start(tmp_path, "printf", "%s\n", "arroyo run") == ["arroyo run"]
