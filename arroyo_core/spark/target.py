"""Which Spark a job runs on, and who says so.

In this order: what the caller asks for, what spark-submit was given (or `PYSPARK_SUBMIT_ARGS`, for a JVM that pyspark
starts itself), `spark-defaults.conf`, the variables `SPARK_REMOTE` and `MASTER`, and else this machine. Settings that
come from outside win over those that we would choose.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.redaction import HIDDEN, Redaction
from arroyo_core.spark.releases import check_pyspark

LOCAL_MASTER = "local[*]"

#: Set by spark-submit for the Python that it starts: the JVM runs already, with all settings.
GATEWAY_VARIABLE = "PYSPARK_GATEWAY_PORT"

#: What spark-submit calls an application that nobody gave a name: the file that it runs.
_ENTRY_NAMES = {"__main__.py"}

_OPTIONS = {"--master": "spark.master", "--remote": "spark.remote", "--name": "spark.app.name"}
#: Schemes of URLs are the same in capitals.
_CONNECT = re.compile("sc://", re.IGNORECASE)
_PARAMETERS = re.compile("[;?]")
_PROPERTY = re.compile(r"\s*(?P<key>spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(?P<value>\S.*?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A Spark to start or to reach."""

    #: As it was given: `local[...]`, a cluster's URL, or Spark Connect's `sc://...`.
    master: str
    #: Who chose it, in words for people; empty where nobody did.
    chosen_by: str = ""
    #: What was set outside of this program; the JVM knows these by itself.
    given: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: The Python that workers run.
    python: str = sys.executable
    #: Whether spark-submit has started the JVM.
    is_submitted: bool = False

    def __str__(self) -> str:
        return f"{self.shown_master}, from {self.chosen_by}" if self.chosen_by else self.shown_master

    @property
    def shown_master(self) -> str:
        """The master for people: without the parameters of Spark Connect, of which `token` is a secret."""
        return shown_master(self.master)

    @property
    def spark_master(self) -> str:
        """What Spark is told: also on one machine, a failed task is tried again."""
        if self.master == "local":
            return "local[1,4]"
        if self.master.startswith("local[") and "," not in self.master:
            return f"{self.master[:-1]},4]"
        return self.master

    @property
    def is_connect(self) -> bool:
        return self.master.startswith("sc://")

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def app_name(self) -> str | None:
        """A name that somebody has given to the application."""
        name = self.given.get("spark.app.name")
        return None if name in _ENTRY_NAMES else name


def shown_master(url: str) -> str:
    """The URL of a master without parameters."""
    return _PARAMETERS.split(url, maxsplit=1)[0].rstrip("/") if _CONNECT.match(url) else url


def redact_master(text: str, url: str) -> str:
    """What is told about the URL of a master, without its parameters, in whatever form the text has them."""
    redaction = Redaction()
    for part in _PARAMETERS.split(url)[1:] if _CONNECT.match(url) else ():
        key, equals, value = part.partition("=")
        hide = redaction.hide if key == "token" or not equals else redaction.hide_setting
        for form in (value, unquote(value)) if equals else (key,):
            hide(form, HIDDEN)
    return redaction.redact(text.replace(url, shown_master(url)))


def resolve_target(master: str | None = None, conf: Mapping[str, str] | None = None) -> Target:
    """Decide where a job runs; `master` and `conf` are what the caller asks for.

    Under spark-submit this connects to its JVM; else it reads the environment and `spark-defaults.conf` only.
    Raises `SetupError` where there is no pyspark, or none that pipelines run on.
    """
    check_pyspark()
    is_submitted = GATEWAY_VARIABLE in os.environ
    given, source = (_submitted(), "spark-submit") if is_submitted else _from_files(os.environ)
    return choose_target(master, conf or {}, given=given, source=source, environment=os.environ)


def choose_target(
    master: str | None,
    conf: Mapping[str, str],
    *,
    given: Mapping[str, str],
    source: str,
    environment: Mapping[str, str],
) -> Target:
    """As `resolve_target`, with all that it reads; pure. `source` names where `given` comes from."""
    choices = (
        (master, ""),
        (conf.get("spark.remote") or conf.get("spark.master"), ""),
        (given.get("spark.remote") or given.get("spark.master"), source),
        (environment.get("SPARK_REMOTE"), "SPARK_REMOTE"),
        (environment.get("MASTER"), "MASTER"),
        (LOCAL_MASTER, ""),
    )
    chosen, chosen_by = next((url, by) for url, by in choices if url)
    key = "spark.pyspark.python"
    # As Spark documents it: the setting goes before the variable.
    python = conf.get(key) or given.get(key) or environment.get("PYSPARK_PYTHON") or sys.executable
    return Target(
        # The client of Spark Connect knows its scheme in small letters only.
        master=_CONNECT.sub("sc://", chosen, count=1) if _CONNECT.match(chosen) else chosen,
        chosen_by=chosen_by,
        given=MappingProxyType(dict(given)),
        python=python,
        is_submitted=GATEWAY_VARIABLE in environment,
    )


def read_submit_args(text: str) -> dict[str, str]:
    """The settings in the arguments of a spark-submit, such as `PYSPARK_SUBMIT_ARGS`; its other options are skipped."""
    settings: dict[str, str] = {}
    named: dict[str, str] = {}
    tokens = iter(split_submit_args(text))
    for token in tokens:
        if token == "pyspark-shell":
            break
        option, equals, value = token.partition("=")
        if option not in (*_OPTIONS, "--conf", "-c", "--properties-file"):
            continue
        value = value if equals else next(tokens, "")
        if option in _OPTIONS:
            named[_OPTIONS[option]] = value
        elif option == "--properties-file":
            settings = read_properties(_text_of(Path(value))) | settings
        else:
            key, _, setting = value.partition("=")
            settings[key] = setting
    # For spark-submit too, `--master` goes before `--conf spark.master`.
    return settings | named


def read_properties(text: str) -> dict[str, str]:
    """The settings in a file such as `spark-defaults.conf`."""
    found = (_PROPERTY.fullmatch(line) for line in text.splitlines())
    return {match["key"]: match["value"] for match in found if match is not None}


def _from_files(environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """What a JVM that pyspark starts is going to have, and what chose its master."""
    submitted = read_submit_args(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    defaults = read_properties(_text_of(defaults_file(environment)))
    is_submitted = "spark.master" in submitted or "spark.remote" in submitted
    return defaults | submitted, "PYSPARK_SUBMIT_ARGS" if is_submitted else "spark-defaults.conf"


def _submitted() -> dict[str, str]:
    """The settings of the JVM that spark-submit has started."""
    from pyspark import SparkConf, SparkContext

    try:
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    except Exception as error:
        raise SetupError(f"the JVM that spark-submit has started does not answer: {error}") from error


def defaults_file(environment: Mapping[str, str]) -> Path:
    """Where Spark looks for settings that nobody gave otherwise."""
    folder = environment.get("SPARK_CONF_DIR")
    return Path(folder) / "spark-defaults.conf" if folder else _spark_home(environment) / "conf/spark-defaults.conf"


def _spark_home(environment: Mapping[str, str]) -> Path:
    home = environment.get("SPARK_HOME")
    if home:
        return Path(home)
    import pyspark

    return Path(pyspark.__path__[0])


def _text_of(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def split_submit_args(text: str) -> list[str]:
    """The arguments in `PYSPARK_SUBMIT_ARGS`."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SetupError(f"PYSPARK_SUBMIT_ARGS cannot be read: {error}") from error
