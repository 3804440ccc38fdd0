"""Importing bundles from memory."""

import subprocess
import sys
import traceback

import pytest
from arroyo_devtools.bundles.building import build_bundle

from arroyo_core.udf.archive import read_archive, write_archive
from arroyo_core.udf.bundle import parse_bundle
from arroyo_core.udf.failures import BundleError, DigestMismatchError
from arroyo_core.udf.loading import load_bundle

UTIL = "FACTOR = {factor}\n\ndef scaled(x):\n    return x * FACTOR\n"
MAIN = """
from arroyo_core.udf import udf
{imports}

@udf
def scale(x: int) -> int:
    return {call}(x)
"""
IMPORTS = [
    ("from .util import scaled", "scaled"),
    ("from . import util", "util.scaled"),
    ("from acme_geo.util import scaled", "scaled"),
    ("from acme_geo import util", "util.scaled"),
    ("import acme_geo.util", "acme_geo.util.scaled"),
    ("import acme_geo.util as other", "other.scaled"),
    ("from acme_geo.deep.er import scaled", "scaled"),
    ("from .deep.er import scaled", "scaled"),
    ("import acme_geo.deep.er", "acme_geo.deep.er.scaled"),
    ("", "__import__('acme_geo.util').util.scaled"),
]


@pytest.fixture
def load(make_project):
    def build_and_load(files, **project):
        built = build_bundle(make_project(files, **project))
        return load_bundle(parse_bundle(built.data, expected_sha256=built.sha256, what="x"))

    return build_and_load


def files(imports="from .util import scaled", call="scaled", factor=2):
    return {
        "acme_geo/__init__.py": "",
        "acme_geo/main.py": MAIN.format(imports=imports, call=call),
        "acme_geo/util.py": UTIL.format(factor=factor),
        "acme_geo/deep/__init__.py": "",
        "acme_geo/deep/er.py": "from ..util import scaled\n",
    }


@pytest.mark.parametrize(("imports", "call"), IMPORTS)
def test_the_modules_of_a_bundle_import_one_another(load, imports, call):
    (scale,) = load(files(imports, call)).functions
    assert scale(21) == 42
    assert "acme_geo" not in sys.modules


@pytest.mark.parametrize(("imports", "call"), IMPORTS)
def test_imports_inside_functions_see_their_own_bundle_too(load, imports, call):
    body = f"from arroyo_core.udf import udf\n\n@udf\ndef scale(x: int) -> int:\n    {imports or 'pass'}\n"
    changed = {**files(), "acme_geo/main.py": f"{body}    return {call}(x)\n"}
    (scale,) = load(changed).functions
    assert scale(21) == 42


def test_two_versions_live_side_by_side(load):
    (old,) = load(files(factor=2), version="1").functions
    (new,) = load(files(factor=3), version="2").functions
    assert (old(10), new(10), old(10)) == (20, 30, 20)


def test_a_bundle_does_not_hide_what_is_installed(load):
    source = "import json as installed\nfrom arroyo_core.udf import udf\n{}"
    call = "@udf\ndef f(x: int) -> str:\n    return installed.MARK\n"
    (function,) = load({"json.py": "MARK = 'mine'\n", "main.py": source.format(call)}, name="mixed").functions
    assert function(1) == "mine"
    import json

    assert not hasattr(json, "MARK")


def test_a_traceback_shows_the_lines_of_the_bundle(load):
    changed = {**files(), "acme_geo/util.py": "def scaled(x):\n    return x / 0  # the line\n"}
    (scale,) = load(changed).functions
    with pytest.raises(ZeroDivisionError) as caught:
        scale(1)
    text = "".join(traceback.format_exception(caught.value))
    assert "return x / 0  # the line" in text
    assert "/acme_geo/util.py" in text
    assert "acme-geo-1.2.0@" in text


def test_a_bundle_reads_its_own_data_files(load):
    main = """
    from importlib.resources import files
    from arroyo_core.udf import udf

    TABLE = (files(__package__) / "table.txt").read_text()

    @udf
    def table(x: int) -> str:
        return TABLE
    """
    (table,) = load({"acme_geo/__init__.py": "", "acme_geo/main.py": main, "acme_geo/table.txt": "abc"}).functions
    assert table(1) == "abc"


def test_a_function_is_loaded_once_per_process(make_bundle):
    bundle = parse_bundle(make_bundle().read_bytes(), expected_sha256=None, what="x")
    assert load_bundle(bundle).functions[0] is load_bundle(bundle).functions[0]


def test_functions_know_where_they_came_from(make_bundle):
    bundle = parse_bundle(make_bundle().read_bytes(), expected_sha256=None, what="x")
    (plain,) = load_bundle(bundle).functions_as(None)
    (aliased,) = load_bundle(bundle).functions_as("v1")
    assert (plain.name, aliased.name) == ("greet", "v1.greet")
    assert str(plain.source) == f"bundle greeting 1.0 (sha256 {bundle.sha256[:12]})"


def test_two_functions_of_one_name_are_an_error(load):
    udf = "from arroyo_core.udf import udf\n\n@udf\ndef one(x: int) -> int:\n    return x\n"
    with pytest.raises(BundleError, match=r"defines 'one' twice: in acme_geo\.a and in acme_geo\.b"):
        load({"acme_geo/__init__.py": "", "acme_geo/a.py": udf, "acme_geo/b.py": udf})


def test_one_function_under_two_names_is_none(load):
    udf = "from arroyo_core.udf import udf\n\n@udf\ndef one(x: int) -> int:\n    return x\n"
    assert len(load({"acme_geo/__init__.py": "from .a import one\n", "acme_geo/a.py": udf}).functions) == 1


def test_a_manifest_that_does_not_fit_the_code_is_refused(make_bundle):
    contents = read_archive(make_bundle().read_bytes(), what="x")
    contents["greeting.py"] = contents["greeting.py"].replace(b"name: str", b"name: int")
    bundle = parse_bundle(write_archive(contents), expected_sha256=None, what="x")
    with pytest.raises(BundleError, match=r"greet\(name: string\) -> string in the manifest, greet\(name: int64\)"):
        load_bundle(bundle)


def test_a_bundle_that_failed_to_import_is_tried_anew(make_bundle, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    source = f"""
    from pathlib import Path
    from arroyo_core.udf import udf
    assert Path({str(flag)!r}).exists()

    @udf
    def one(x: int) -> int:
        return x
    """
    bundle = parse_bundle(make_bundle(source, name="flagged").read_bytes(), expected_sha256=None, what="x")
    flag.unlink()
    with pytest.raises(BundleError, match="cannot be imported: AssertionError"):
        load_bundle(bundle)
    flag.touch()
    assert load_bundle(bundle).functions[0](3) == 3


def test_a_digest_that_does_not_fit_is_refused_before_anything_is_read():
    with pytest.raises(DigestMismatchError, match=r"x has the sha256 .* not 0000"):
        parse_bundle(b"no zip at all", expected_sha256="0" * 64, what="x")


def test_tasks_without_user_functions_import_nothing_for_them():
    script = "import sys, arroyo_core.runtime.wave; print([n for n in sys.modules if n.startswith('arroyo_core.udf')])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
