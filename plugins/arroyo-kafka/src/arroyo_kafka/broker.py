"""A Kafka broker for tests and for trying out: one KRaft node on loopback, whose data goes with it.

    python -m arroyo_kafka.broker [--port 9092] [--version 4.1.0]

The server comes from Maven Central, once, through the Ivy that pyspark brings, and is kept in a cache. Needs Java 17.
It is not for production: one node, no replicas, no security but what a test configures.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import LocalFolder

VERSION = "4.1.0"
#: Where servers are kept; each version has a folder of its own. Its jars are run, and no secret.
CACHE = LocalFolder(what="Kafka cache", variable="ARROYO_KAFKA_CACHE", name="arroyo-kafka", closed=0o022)
#: An Ivy settings file, for machines that reach Maven Central through a mirror.
IVY_SETTINGS_VARIABLE = "ARROYO_IVY_SETTINGS"
START_SECONDS = 60
STOP_SECONDS = 20
HEAP = "-Xmx512m"
#: Jars that a server does not need, or that would hide the logging of pyspark's jars.
_LEFT_OUT = ("-sources.jar", "-javadoc.jar", "slf4j-api-")

_LOGGING = """\
status = error
appender.file.type = Console
appender.file.name = out
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class Broker:
    """One server. It may be stopped, killed, paused and started again: port and data stay."""

    def __init__(self, folder: Path, *, port: int | None = None, version: str = VERSION) -> None:
        self._folder = folder
        self._version = version
        self._settings: dict[str, str] = {}
        self.port = port or free_port()
        self._controller_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        if self._process is None:
            raise RuntimeError("the broker does not run")
        return self._process.pid

    @property
    def log_file(self) -> Path:
        return self._folder / "server.log"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Settings of the server, which count from its next start on; listeners included."""
        self._settings.update(settings)

    def start(self) -> None:
        """Return when it answers; raises `SetupError` with the end of its log where it does not."""
        self._folder.mkdir(parents=True, exist_ok=True)
        properties = self._write_properties()
        if not (self._folder / "data" / "meta.properties").exists():
            self._format(properties)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(properties)), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.bootstrap_servers, self._settings):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SetupError(f"the Kafka broker did not start: {_tail(self.log_file)}")

    def stop(self) -> None:
        """End it in order; it writes down what it has."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """As if the machine had lost power."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._process.wait() if self._process is not None else 0

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _format(self, properties: Path) -> None:
        first, *rest = uuid.uuid4().bytes
        # Below 128, so that it does not begin with a dash: that would be an option.
        cluster = urlsafe_b64encode(bytes([first % 128, *rest])).rstrip(b"=").decode()
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SetupError(f"the folder of the Kafka broker cannot be prepared: {done.stdout}{done.stderr}")

    def _java(self, main: str, *arguments: str) -> Sequence[str]:
        libraries = fetch_server(self._version)
        jars = [str(jar) for jar in sorted(libraries.glob("*.jar")) if not any(part in jar.name for part in _LEFT_OUT)]
        logging = [str(jar) for jar in _spark_jars("slf4j-api-*", "log4j-slf4j2-impl-*", "log4j-api-*", "log4j-core-*")]
        classpath = os.pathsep.join([*logging, *(jar for jar in jars if "/log4j-" not in jar)])
        options = [HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        log = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        return [_java_command(), *options, log, "-cp", classpath, main, *arguments]

    def _write_properties(self) -> Path:
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self._folder / "data"),
            "num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.segment.delete.delay.ms": "1000",
            # One that was killed is known again soon after its next start.
            "broker.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": "1500",
            **self._settings,
        }
        (self._folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        path = self._folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return path


@contextlib.contextmanager
def running_broker(*, port: int | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A broker whose data goes when the block ends; raises `SetupError` where it cannot be had."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-kafka-"))
    broker = Broker(folder, port=port)
    broker.configure(settings or {})
    try:
        broker.start()
        yield broker
    finally:
        broker.resume()
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)


def fetch_server(version: str = VERSION) -> Path:
    """The folder with the server's jars, fetched at the first call; raises `SetupError` where that fails."""
    cache = CACHE.path()
    if cache is None:
        raise SetupError(f"{CACHE.variable} names the folder that a Kafka broker is fetched to: it cannot be 'off'")
    CACHE.make(cache)
    folder = cache / f"kafka-{version}"
    if folder.is_dir():
        return folder
    with (cache / ".lock").open("w") as lock:
        # One process fetches, the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(version, folder)
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fetch(version: str, folder: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    command = [_java_command(), "-jar", str(_spark_jars("ivy-*")[0]), "-cache", str(unfinished / "ivy")]
    if os.environ.get(IVY_SETTINGS_VARIABLE):
        command += ["-settings", os.environ[IVY_SETTINGS_VARIABLE]]
    command += ["-dependency", "org.apache.kafka", "kafka_2.13", version]
    command += ["-retrieve", f"{unfinished}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        server = unfinished / "jars" / f"kafka_2.13-{version}.jar"
        if done.returncode or not server.exists():
            raise SetupError(
                f"cannot fetch Kafka {version} from Maven Central ({IVY_SETTINGS_VARIABLE} may name an Ivy settings "
                f"file with a mirror): {(done.stdout + done.stderr)[-2000:]}"
            )
        (unfinished / "jars").rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _spark_jars(*patterns: str) -> list[Path]:
    spec = find_spec("pyspark")
    if spec is None or spec.submodule_search_locations is None:
        raise SetupError("pyspark is not installed: its Ivy fetches the Kafka broker")
    jars = Path(spec.submodule_search_locations[0]) / "jars"
    found = [jar for pattern in patterns for jar in sorted(jars.glob(f"{pattern}.jar"))]
    if not found:
        raise SetupError(f"pyspark has no jar {patterns[0]!r} in {jars}: the thin client cannot fetch a broker")
    return found


def _java_command() -> str:
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if command is None:
        raise SetupError("a Kafka broker needs Java 17 or later: install it, or point JAVA_HOME to it")
    return command


def _answers(bootstrap_servers: str, settings: Mapping[str, str]) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    host, _, port = bootstrap_servers.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=0.2):
        if "listeners" in settings:
            # Only its clients know how to speak to it.
            return True
        try:
            client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False
    time.sleep(0.1)
    return False


def _tail(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-2000:]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m arroyo_kafka.broker", description="Run a Kafka broker.")
    parser.add_argument("--port", type=int, default=9092, help="the port on 127.0.0.1; default 9092")
    parser.add_argument("--version", default=VERSION, help=f"the version of Kafka; default {VERSION}")
    return run(parser.parse_args())


def run(arguments: argparse.Namespace) -> int:
    """Run a broker on `arguments.port` until it is ended; its data goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-kafka-"))
    broker = Broker(folder, port=arguments.port, version=arguments.version)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        broker.start()
        where = broker.bootstrap_servers
        sys.stdout.write(f"Kafka {arguments.version} listens on {where}; Ctrl-C ends it and removes its data\n")
        sys.stdout.flush()
        return broker.wait()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
