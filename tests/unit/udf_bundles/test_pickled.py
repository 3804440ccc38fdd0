"""Functions of a running program as bundles."""

import hashlib
import os
import pickle
import platform
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from arroyo_testing import run_in_process

from arroyo_core.errors import InvalidPipelineError, UdfDeclarationError
from arroyo_core.pipeline import UdfKind, plan_pipeline
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.user_code import BundleOpener, open_pickled, store_pickled
from arroyo_core.udf import udf
from arroyo_core.udf.archive import read_archive, write_archive
from arroyo_core.udf.bundle import PICKLE, parse_bundle
from arroyo_core.udf.code_digest import code_digest
from arroyo_core.udf.failures import BundleError, DigestMismatchError
from arroyo_core.udf.loading import load_bundle
from arroyo_core.udf.manifest import MANIFEST, decode_manifest
from arroyo_core.udf.pickled import pickle_function

PREFIX = "hi "


def decorated(text):
    return PREFIX + text


@udf
def hi(name: str) -> str:
    return decorated(name)


@pytest.fixture
def plan(plugins, pipeline):
    def make(*functions, checkpoint=""):
        opener = BundleOpener(pickled=[open_pickled(function) for function in functions])
        path = pipeline([], *(function.name for function in functions), checkpoint=checkpoint)
        return plan_pipeline(path, plugins=plugins, environment={}, bundles=opener)

    return make


def test_a_function_goes_with_the_plan_where_there_is_no_store(plan, plugins, seen):
    planned = plan(hi)
    (pin,) = planned.udfs
    assert (pin.kind, pin.name, pin.url) == (UdfKind.PICKLE, "hi", None)
    assert pin.version == ".".join(platform.python_version_tuple()[:2])
    assert hashlib.sha256(pin.content).hexdigest() == pin.sha256
    run_in_process(pickle.loads(pickle.dumps(planned)), plugins=plugins)
    assert seen == ["hi n0", "hi n1", "hi n2"]


def test_with_a_store_the_plan_names_the_pickle_only(plan, plugins, seen, tmp_path):
    planned = store_pickled(plan(hi, checkpoint=f"{{url: {tmp_path}/state}}"))
    (pin,) = planned.udfs
    assert pin.content is None
    assert pin.url == f"{tmp_path}/state/p/udfs/{pin.sha256}.pickle"
    assert Path(pin.url).exists()
    run_in_process(planned, plugins=plugins)
    assert seen == ["hi n0", "hi n1", "hi n2"]
    # A second start finds it there.
    assert store_pickled(plan(hi, checkpoint=f"{{url: {tmp_path}/state}}")).udfs[0].url == pin.url


def test_a_pickle_that_is_not_the_pinned_one_is_never_loaded(plan, plugins, tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_UDF_CACHE", "off")
    planned = store_pickled(plan(hi, checkpoint=f"{{url: {tmp_path}/state}}"))
    (pin,) = planned.udfs
    evil = b"cposix\nsystem\n(S'touch " + str(tmp_path / "owned").encode() + b"'\ntR."
    contents = read_archive(Path(pin.url).read_bytes(), what="x")
    Path(pin.url).write_bytes(write_archive({**contents, PICKLE: evil}))
    with pytest.raises(DigestMismatchError):
        plugins_for(planned, plugins)
    assert not (tmp_path / "owned").exists()
    inline = replace(pin, content=Path(pin.url).read_bytes())
    with pytest.raises(DigestMismatchError):
        plugins_for(replace(planned, udfs=(inline,)), plugins)
    assert not (tmp_path / "owned").exists()


def test_another_python_version_is_a_clear_error():
    contents = read_archive(pickle_function(hi), what="x")
    manifest = contents[MANIFEST].replace(
        f'"version": "{".".join(platform.python_version_tuple()[:2])}"'.encode(), b'"version": "3.99"'
    )
    bundle = parse_bundle(write_archive({**contents, MANIFEST: manifest}), expected_sha256=None, what="x")
    with pytest.raises(BundleError, match=r"was pickled by Python 3\.99, and this is Python 3\.\d+"):
        load_bundle(bundle)


def test_what_cannot_be_pickled_is_a_clear_error():
    lock = threading.Lock()

    @udf
    def stuck(name: str) -> str:
        with lock:
            return name

    with pytest.raises(BundleError, match="the function 'stuck' cannot be sent to executors: TypeError"):
        pickle_function(stuck)


def test_odd_things_among_the_loaded_modules_do_no_harm(monkeypatch):
    monkeypatch.setitem(sys.modules, "second_name", sys.modules[__name__])
    monkeypatch.setitem(sys.modules, "no_module", type("Odd", (), {"__file__": "/somewhere/odd.py"})())
    assert pickle_function(hi)


def test_a_plain_function_is_declared_on_the_way():
    from arroyo_core import Pipeline

    def twice(x: int) -> int:
        return 2 * x

    def untyped(x):
        return x

    functions = Pipeline.udf(twice).udf(hi).functions
    assert [function.signature for function in functions] == [
        "twice(x: int64) -> int64",
        "hi(name: string) -> string",
    ]
    with pytest.raises(UdfDeclarationError, match="untyped"):
        Pipeline.udf(untyped)


def test_a_name_that_is_taken_is_a_mistake(plan):
    @udf(name="hi")
    def other(name: str) -> str:
        return name

    with pytest.raises(InvalidPipelineError, match="two sources of functions are called 'hi'"):
        plan(hi, other)


HELPER = """
TABLE = {{"b": 2, "a": 1}}
WORDS = {{"x", "y", "z", "w", {word!r}}}

class Base:
    factor = {factor}

def scaled(x):
    # {comment}
    return x * Base.factor
"""
SCRIPT = """
import sys
import helper
from arroyo_core.udf import udaf, udf
from arroyo_core.udf.manifest import MANIFEST, decode_manifest
from arroyo_core.udf.archive import read_archive
from arroyo_core.udf.pickled import pickle_function
from pathlib import Path


@udf
def scale(x: int) -> int:
    return helper.scaled(x) if "x" in helper.WORDS else helper.TABLE["a"]


@udaf
class Total:
    def init(self) -> int:
        return 0

    def update(self, state: int, value: int) -> int:
        return state + helper.scaled(value)

    def merge(self, first: int, second: int) -> int:
        return first + second

    def finish(self, state: int) -> int:
        return state


for function in (scale, Total):
    data = pickle_function(function)
    Path(sys.argv[1], function.name + ".pickle").write_bytes(data)
    print(decode_manifest(read_archive(data, what="x")[MANIFEST], what="x").code_sha256)
"""


def digests(folder, *, seed, factor=2, word="v", comment="why"):
    """What a program of its own makes of its functions: `scale`, then `Total`."""
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text(HELPER.format(factor=factor, word=word, comment=comment))
    script = folder / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
    )
    return done.stdout.split()


def test_the_same_program_has_the_same_digest_in_every_run(tmp_path):
    first = digests(tmp_path / "a", seed=1)
    assert len(set(first)) == 2
    # From the .pyc, with sets in another order, at another place, with another comment.
    assert digests(tmp_path / "a", seed=2) == first
    assert digests(tmp_path / "b", seed=3, comment="why\n    # at length") == first


@pytest.mark.parametrize("change", [{"factor": 3}, {"word": "u"}])
def test_a_change_in_what_a_function_uses_changes_its_digest(tmp_path, change):
    first = digests(tmp_path / "a", seed=1)
    changed = digests(tmp_path / "b", seed=1, **change)
    assert changed[0] != first[0]


def test_a_function_takes_the_modules_of_its_program_along(tmp_path):
    digests(tmp_path / "a", seed=1)
    loader = """
    import sys
    from arroyo_core.udf.bundle import parse_bundle
    from arroyo_core.udf.loading import load_bundle
    data = open(sys.argv[1], "rb").read()
    (function,) = load_bundle(parse_bundle(data, expected_sha256=None, what="x")).functions
    print(function(21))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(loader), str(tmp_path / "a" / "scale.pickle")],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.stdout.strip() == "42"


def test_code_is_digested_by_what_it_does():
    def make(step, default=1, names=("a",)):
        def add(x, y=default):
            return x + y + step + len(names)

        return add

    assert code_digest(make(1)) == code_digest(make(1))
    assert len({code_digest(make(*item)) for item in [(1,), (2,), (1, 2), (1, 1, ("b",))]}) == 4


def test_code_that_refers_to_itself_has_a_digest():
    def countdown(x):
        return countdown(x - 1) if x else values

    values = [1]
    values.append(values)
    assert code_digest(countdown) == code_digest(countdown)


def test_the_manifest_of_a_pickle_holds_its_code_digest():
    manifest = decode_manifest(read_archive(pickle_function(hi), what="x")[MANIFEST], what="x")
    assert manifest.code_sha256 == code_digest(hi)
    assert open_pickled(hi).pin.identity == code_digest(hi)
