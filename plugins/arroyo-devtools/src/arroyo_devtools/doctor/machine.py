"""What this machine has: Java, Python, packages, room, time."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import arroyo_core
from arroyo_core.cli.formats import format_duration, format_size
from arroyo_core.errors import SetupError
from arroyo_core.local_folders import STATE_CACHE, UDF_CACHE, LocalFolder
from arroyo_core.spark.java import check_java, java_version
from arroyo_core.spark.releases import INSTALL, is_supported
from arroyo_core.state.cache_sweep import measure_usage
from arroyo_devtools.doctor.findings import Finding, Level, failed, ok, warning

GIBIBYTE = 2**30
#: A run of any size writes shuffles and state caches; below these it slows down, or ends.
SCARCE_DISK_BYTES, LEAST_DISK_BYTES = 2 * GIBIBYTE, GIBIBYTE // 8
SCARCE_MEMORY_BYTES, LEAST_MEMORY_BYTES = 2 * GIBIBYTE, GIBIBYTE // 2
#: Each gets a line of its own; of the others only what is wrong.
SHOWN_PACKAGES = ("pyspark", "pyarrow", "protobuf", "pandas")
#: What brings pyspark where a platform does not.
SPARK_EXTRA = "spark"
#: pyspark without a JVM, and without py4j.
THIN_CLIENT = "pyspark-client"
#: How far the clock of the wall may run from the steady one in a moment.
MAX_JUMP_S = 1.0


def check_java_found() -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    try:
        check_java()
    except SetupError as error:
        message, _, fix = str(error).partition(". ")
        yield failed("java", message, fix)
        return
    command = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set, the PATH has it"
    yield ok("java", f"Java {java_version(command or 'java')} at {command} ({where})")


def check_python() -> Iterator[Finding]:
    here = platform.python_version()
    wanted = metadata("arroyo-core")["Requires-Python"]
    if wanted and here not in SpecifierSet(wanted):
        yield failed("python", f"Python {here}, and arroyo-core needs {wanted}", "use another Python")
    else:
        yield ok("python", f"Python {here} at {sys.executable}")
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen or chosen == sys.executable:
        return
    found = _python_version(chosen)
    fix = "unset PYSPARK_PYTHON, or set it to the Python that has arroyo-core and its plugins"
    if found is None:
        yield failed("python of workers", f"PYSPARK_PYTHON is {chosen}, which does not run", fix)
    elif found.split(".")[:2] != here.split(".")[:2]:
        yield failed("python of workers", f"PYSPARK_PYTHON is {chosen}, Python {found}: the driver has {here}", fix)
    else:
        yield warning("python of workers", f"PYSPARK_PYTHON is {chosen}, not this very interpreter", fix)


def check_packages() -> Iterator[Finding]:
    """What arroyo-core requires, and what it requires to run pipelines on Spark."""
    for text in sorted(requires("arroyo-core") or []):
        requirement = Requirement(text)
        is_always = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if not is_always and not (requirement.marker and requirement.marker.evaluate({"extra": SPARK_EXTRA})):
            continue
        name = requirement.name
        fix = f"pip install '{name}{requirement.specifier}'" if is_always else INSTALL
        found = _version_of(name)
        if found is None and name == "pyspark" and (thin := _version_of(THIN_CLIENT)):
            yield ok(name, f"{THIN_CLIENT} {thin} stands for it: it reaches Spark Connect (--master sc://...) only")
        elif found is None and name == "pyspark":
            yield failed(name, "is not installed: pipelines can be checked and planned here, and not run on Spark", fix)
        elif found is None:
            yield failed(name, "is not installed", fix)
        elif not _is_allowed(name, found, requirement):
            yield failed(name, f"{found} is installed, and arroyo-core needs {requirement.specifier}", fix)
        elif name in SHOWN_PACKAGES:
            yield ok(name, f"{found} (supported: {requirement.specifier})")


def _is_allowed(name: str, found: str, requirement: Requirement) -> bool:
    return is_supported(found) if name == "pyspark" else requirement.specifier.contains(found, prereleases=True)


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        # A platform has a pyspark of its own, which pip knows nothing of.
        return _version_of_platform() if name == "pyspark" else None


def _version_of_platform() -> str | None:
    if _version_of(THIN_CLIENT) is not None:
        return None
    try:
        import_module("pyspark")
        return str(import_module("pyspark.version").__version__)
    except ImportError:
        return None


def check_disk() -> Iterator[Finding]:
    """Room where state and bundles are cached, and where Spark keeps shuffles."""
    folders = set()
    for cache in (STATE_CACHE, UDF_CACHE):
        folder = cache.path()
        finding = _cache_finding(cache, folder)
        if folder is not None:
            folders.add(folder)
            if cache is STATE_CACHE and finding.level is Level.OK and folder.exists():
                finding = ok(cache.what, f"{folder}: {_describe_state_cache(folder)}")
        yield finding
    for text in os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(","):
        folder = Path(text.strip())
        if not os.access(_existing(folder), os.W_OK):
            yield failed("Spark's folder", f"{folder} cannot be written", "set SPARK_LOCAL_DIRS to a folder that can")
        folders.add(folder)
    fix = "make room, or choose a larger disk with SPARK_LOCAL_DIRS, ARROYO_STATE_CACHE and ARROYO_UDF_CACHE"
    # Several of them are mostly on one disk: one line for each disk.
    for place in {_existing(folder).stat().st_dev: folder for folder in sorted(folders)}.values():
        yield room_finding("disk", place, fix)


def check_memory() -> Iterator[Finding]:
    available = _available_memory()
    if available is None:
        return
    fix = "give Spark less (--conf spark.driver.memory=1g), or run fewer tasks at a time (--master local[2])"
    message = f"{format_size(available)} available"
    if available < LEAST_MEMORY_BYTES:
        yield failed("memory", message, fix)
    elif available < SCARCE_MEMORY_BYTES:
        yield warning("memory", message, fix)
    else:
        yield ok("memory", message)


def check_clock() -> Iterator[Finding]:
    """The wall clock moves as the steady one does, and is not before the day this code was installed."""
    wall, steady = time.time(), time.monotonic()
    time.sleep(0.2)
    jump = (time.time() - wall) - (time.monotonic() - steady)
    installed = Path(arroyo_core.__file__).stat().st_mtime
    fix = "let the system set its clock (NTP): event times, windows of idle sources and ages of files depend on it"
    if abs(jump) > MAX_JUMP_S:
        yield warning("clock", f"it jumped by {jump:.1f} s just now", fix)
    elif wall < installed - 86_400:
        yield failed("clock", f"it says {_date(wall)}, and this code was installed on {_date(installed)}", fix)
    else:
        yield ok("clock", f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(wall))}, moving steadily")


def _python_version(command: str) -> str | None:
    program = "import platform; print(platform.python_version())"
    try:
        done = subprocess.run([command, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cache_finding(cache: LocalFolder, folder: Path | None) -> Finding:
    name = cache.what
    if folder is None:
        return ok(name, f"off ({cache.variable})")
    fix = f"set {cache.variable} to a folder of this user that others cannot read (mode 700), or to 'off'"
    if not folder.exists():
        if os.access(_existing(folder), os.W_OK):
            return ok(name, f"{folder} will be made")
        return failed(name, f"{folder} cannot be made: {_existing(folder)} is not writable", fix)
    if not cache.is_private(folder):
        return failed(name, f"{folder} is not a folder of this user alone", fix)
    if not os.access(folder, os.W_OK):
        return failed(name, f"{folder} cannot be written", fix)
    return ok(name, f"{folder} is writable")


def _describe_state_cache(folder: Path) -> str:
    """How much is in the cache, for how long it has been there unused, and what was left by processes that died."""
    usage = measure_usage(folder, now_s=time.time())
    said = f"{format_size(usage.size_bytes)} in {usage.entries} entries of {usage.jobs} jobs"
    if usage.entries:
        said += f", the oldest unused for {format_duration(usage.idle_s)}"
    return said + (f", {usage.unfinished} left unfinished" if usage.unfinished else "")


def room_finding(check: str, folder: Path, fix: str) -> Finding:
    """How much is free on the disk of a folder that is there, or will be."""
    free = shutil.disk_usage(_existing(folder)).free
    message = f"{format_size(free)} free at {folder}"
    if free < LEAST_DISK_BYTES:
        return failed(check, message, fix)
    return warning(check, message, fix) if free < SCARCE_DISK_BYTES else ok(check, message)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _available_memory() -> int | None:
    """Of this machine, or what a container leaves of it; None where the system does not tell."""
    found = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        kib = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        found += [int(kib[1]) * 1024] if kib else []
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and (text := limit.read_text().strip()).isdigit():
        found.append(max(0, int(text) - int(used.read_text())))
    return min(found, default=None)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
