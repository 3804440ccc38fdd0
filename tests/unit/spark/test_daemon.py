import os
import sys
from pathlib import Path

import pytest

from arroyo_core.spark.daemon import daemon_environment, ending_quietly, preload, run, unzipped

#: Where Spark tells its daemon to make a socket.
SOCKETS = "PYTHON_WORKER_FACTORY_SOCK_DIR"


def package(folder: Path) -> Path:
    (folder / "pyspark" / "python" / "lib").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    return folder / "pyspark" / "python" / "lib" / "pyspark.zip"


def test_the_zip_of_an_installed_pyspark_is_left_out(tmp_path):
    zipped = package(tmp_path)
    assert unzipped([str(zipped), str(tmp_path)]) == [str(tmp_path)]


def test_the_zip_of_another_spark_stays(tmp_path):
    zipped = package(tmp_path / "cluster")
    package(tmp_path / "site")
    paths = [str(zipped), str(tmp_path / "site")]
    assert unzipped(paths) == paths
    assert unzipped([str(zipped)]) == [str(zipped)]


def test_the_daemon_loads_the_plugins_that_the_driver_has_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "arroyo_std.made_up", sys)
    monkeypatch.setitem(sys.modules, "unrelated.made_up", sys)
    names = daemon_environment()["ARROYO_PRELOAD"].split(",")
    assert "arroyo_std.made_up" in names
    assert "unrelated.made_up" not in names


def test_workers_keep_memory_as_somebody_has_chosen(monkeypatch):
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    environment = daemon_environment()
    assert environment["MALLOC_TRIM_THRESHOLD_"] == "1"
    assert environment["MALLOC_MMAP_THRESHOLD_"] == str(8 << 20)


def test_workers_have_the_limits_of_the_driver(monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_LINE_BYTES", "1MiB")
    assert daemon_environment()["ARROYO_MAX_LINE_BYTES"] == "1MiB"


def test_a_module_that_cannot_be_loaded_is_left_to_the_tasks(monkeypatch, tmp_path):
    (tmp_path / "broken_module.py").write_text("raise RuntimeError")
    (tmp_path / "whole_module.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("gc.freeze", lambda: None)
    preload(["broken_module", "missing_module", "whole_module"])
    assert "whole_module" in sys.modules
    assert "broken_module" not in sys.modules


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_a_worker_whose_socket_is_closed_ends_without_a_traceback(error):
    def worker(sock, authenticated):
        raise error

    assert ending_quietly(worker)(None, True) == 1


def test_other_faults_of_a_worker_are_seen():
    def worker(sock, authenticated):
        if authenticated:
            return 0
        raise OSError("disk")

    assert ending_quietly(worker)(None, True) == 0
    with pytest.raises(OSError, match="disk"):
        ending_quietly(worker)(None, False)


def test_workers_have_no_key_and_a_folder_of_their_own_for_sockets(monkeypatch):
    from pyspark import daemon as pyspark_daemon

    seen = []
    monkeypatch.setattr(pyspark_daemon, "worker", pyspark_daemon.worker)
    look = lambda: seen.append((dict(os.environ), Path(os.environ[SOCKETS]).stat()))  # noqa: E731
    monkeypatch.setattr(pyspark_daemon, "manager", look)
    monkeypatch.setenv("ARROYO_SEAL_KEY", "k" * 32)
    monkeypatch.setenv("ARROYO_SEAL_KEY_FILE", "keys")
    monkeypatch.setenv(SOCKETS, "/nosuch/folder/of/another/machine")
    run()
    ((environment, folder),) = seen
    assert not {"ARROYO_SEAL_KEY", "ARROYO_SEAL_KEY_FILE"} & environment.keys()
    assert (folder.st_mode & 0o777, folder.st_uid) == (0o700, os.getuid())
    assert not Path(environment[SOCKETS]).exists()
