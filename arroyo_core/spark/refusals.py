"""Which failures of a Spark job stay as they are however often it is run again; decided by what Spark says.

A job that dies is worth another try, unless Spark tells a reason of these: what it cannot analyse, does not support,
has no class for or cannot send, and settings that are wrong or too small.
"""

from __future__ import annotations

import re

#: The errors of PySpark itself, by class; a subclass counts.
_KINDS = {
    "AnalysisException",
    "IllegalArgumentException",
    "ParseException",
    "PySparkAttributeError",
    "PySparkNotImplementedError",
    "PySparkPicklingError",
    "PySparkTypeError",
    "PySparkValueError",
    "UnsupportedOperationException",
}

#: Classes of SQLSTATE: feature not supported, data that does not fit, access or syntax, missing class, limits.
_STATES = re.compile(r"SQLSTATE: (0A|22|42|46|54)\w{3}\b")

#: Of the JVM, wherever they are in the chain of causes.
_JAVA = re.compile(
    r"(?:^|: )(?:[\w.$]+\.)?(?:ClassNotFoundException|NoClassDefFoundError|NoSuchMethodError|NoSuchFieldError|"
    r"AbstractMethodError|IncompatibleClassChangeError|UnsupportedClassVersionError|InvalidClassException|"
    r"NotSerializableException|UnsupportedOperationException|SparkClassNotFoundException|"
    r"SparkUnsupportedOperationException)\b",
    re.MULTILINE,
)

#: What Spark says, and what helps.
_SETTINGS = (
    (
        re.compile(r"Total size of serialized results of \d+ tasks \([^)]*\) is bigger than \S+ \([^)]*\)"),
        "raise spark.driver.maxResultSize",
    ),
    (re.compile(r"Kryo serialization failed: Buffer overflow[^\n]*"), "raise spark.kryoserializer.buffer.max"),
    (re.compile(r"Task not serializable|Task serialization failed[^\n]*"), ""),
)


def refusal_of(error: Exception) -> str | None:
    """Why the job would fail again, in a line; None for a failure that another try may not meet."""
    text = str(error)
    for pattern, advice in _SETTINGS:
        found = pattern.search(text)
        if found is not None:
            return f"{found[0]}; {advice}" if advice else cause_of(text)
    is_known = any(kind.__name__ in _KINDS for kind in type(error).__mro__)
    return cause_of(text) if is_known or _STATES.search(text) or _JAVA.search(text) else None


def cause_of(text: str) -> str:
    """The line of an error of Spark that says what happened, without the place in Python that was called."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("An error occurred while calling", "at "))]
    return (told or lines or ["no reason is given"])[0].removeprefix(": ")
