"""`arroyo udf build`: what becomes of sources."""

import os
import zipfile
from importlib import metadata

import pytest
from arroyo_devtools.bundles.building import build_bundle

from arroyo_core.udf.bundle import parse_bundle
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.loading import load_bundle
from arroyo_core.udf.manifest import Manifest, check_environment

UDF = "from arroyo_core.udf import udf\n\n@udf\ndef {name}(x: int) -> int:\n    return x\n"


def test_equal_sources_give_equal_bytes(make_project):
    folder = make_project({"acme_geo/__init__.py": UDF.format(name="one"), "acme_geo/data.txt": "abc"})
    first = build_bundle(folder)
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    (folder / "src/acme_geo/__pycache__").mkdir()
    (folder / "src/acme_geo/__pycache__/x.pyc").write_bytes(b"x")
    assert build_bundle(folder).data == first.data


def test_a_folder_gives_a_wheel_that_pip_could_install(make_project, tmp_path):
    folder = make_project(
        {"acme_geo/__init__.py": UDF.format(name="one"), "acme_geo/more.py": UDF.format(name="two")},
        **{"requires-python": ">=3.11", "dependencies": ["pyarrow>=1"]},
    )
    built = build_bundle(folder)
    assert built.file_name == "acme_geo-1.2.0-py3-none-any.whl"
    path = tmp_path / built.file_name
    path.write_bytes(built.data)
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        assert names == sorted(names)
        record = wheel.read("acme_geo-1.2.0.dist-info/RECORD").decode()
        assert {line.split(",")[0] for line in record.splitlines()} == set(names)
        (tmp_path / "unpacked").mkdir()
        wheel.extractall(tmp_path / "unpacked")
    (found,) = metadata.distributions(path=[str(tmp_path / "unpacked")])
    assert (found.name, found.version, found.requires) == ("acme-geo", "1.2.0", ["pyarrow>=1"])
    assert built.manifest.modules == ("acme_geo", "acme_geo.more")
    assert [function.signature for function in built.manifest.functions] == [
        "one(x: int64) -> int64",
        "two(x: int64) -> int64",
    ]


def test_entry_points_are_kept(make_project):
    folder = make_project({"acme_geo/__init__.py": UDF.format(name="one")})
    with (folder / "pyproject.toml").open("a") as file:
        file.write('[project.entry-points.arroyo_core]\nacme = "acme_geo.plugin"\n')
    assert b"[arroyo_core]\nacme = acme_geo.plugin\n" in build_bundle(folder).data


def test_one_file_gives_a_zip_with_what_its_head_says(tmp_path):
    path = tmp_path / "my_functions.py"
    head = '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["pyarrow>=1", "numpy"]\n# ///\n'
    path.write_text(f'{head}__version__ = "2.0.1"\n{UDF.format(name="one")}')
    built = build_bundle(path)
    assert built.file_name == "my_functions-2.0.1.zip"
    assert built.manifest.requires_python == ">=3.11"
    assert built.manifest.dependencies == ("numpy", "pyarrow>=1")
    assert load_bundle(parse_bundle(built.data, expected_sha256=built.sha256, what="x")).functions[0].name == "one"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no functions in wrong"),
        ("def f(:\n", "line 1: invalid syntax"),
        ("__version__ = str(1)\n", "line 1: __version__ must be a plain string"),
        ("__version__ = 'new'\n", "'new' is not a version such as 1.2.0"),
        ("1 / 0\n", r"cannot be imported: ZeroDivisionError.*line 1: 1 / 0"),
        ("raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
        ("import surely_missing\n", "No module named 'surely_missing'"),
        ("# /// script\n# dependencies = [\n# ///\n", "is not TOML"),
        ('# /// script\n# dependencies = ["surely-missing>=2"]\n# ///\n', r"needs surely-missing>=2 \(not installed\)"),
    ],
)
def test_a_module_that_is_no_bundle_is_a_clear_error(tmp_path, text, message):
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(BundleError, match=message):
        build_bundle(path)


def test_a_folder_that_is_no_project_is_a_clear_error(tmp_path, make_project):
    with pytest.raises(BundleError, match=r"cannot read .*pyproject\.toml: No such file"):
        build_bundle(tmp_path)
    (tmp_path / "none.txt").touch()
    with pytest.raises(BundleError, match=r"neither a folder with a pyproject\.toml nor a \.py file"):
        build_bundle(tmp_path / "none.txt")
    folder = make_project({"other.txt": ""})
    with pytest.raises(BundleError, match="has no package 'acme_geo'"):
        build_bundle(folder)
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\ndynamic = ["version"]\n')
    with pytest.raises(BundleError, match="needs 'version' as a string"):
        build_bundle(folder)


def test_links_in_a_project_are_refused(make_project):
    folder = make_project({"acme_geo/__init__.py": UDF.format(name="one")})
    (folder / "src/acme_geo/secret.txt").symlink_to("/etc/hostname")
    with pytest.raises(BundleError, match="is a link"):
        build_bundle(folder)


@pytest.mark.parametrize(
    ("requires_python", "dependencies", "lack"),
    [
        (">=3.12", (), r"Python >=3\.12 \(this is 3\.11\.2\)"),
        ("", ("a>=2",), r"a>=2 \(installed: 1\.5\)"),
        ("", ("b",), r"b \(not installed\)"),
        (">=4", ("b", "a>=2"), r"Python >=4 .*, b \(not installed\), a>=2 \(installed: 1\.5\)"),
        ("", ("a[",), "is not a requirement"),
        ("new", (), "is not a version specifier"),
    ],
)
def test_what_an_environment_lacks_is_named(requires_python, dependencies, lack):
    with pytest.raises(BundleError, match=lack):
        _check(requires_python, dependencies)


@pytest.mark.parametrize(
    ("requires_python", "dependencies"),
    [("", ()), (">=3.11", ("a>=1,<2",)), ("", ("a", "b; python_version < '3'", "b; extra == 'more'"))],
)
def test_an_environment_that_has_everything_will_do(requires_python, dependencies):
    _check(requires_python, dependencies)


def _check(requires_python, dependencies):
    def installed(name):
        if name != "a":
            raise metadata.PackageNotFoundError(name)
        return "1.5"

    manifest = Manifest(name="x", version="1", requires_python=requires_python, dependencies=dependencies)
    check_environment(manifest, what="x", python="3.11.2", installed=installed)


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BundleError, match=r"there is no .*prices\.py: give a folder"):
        build_bundle(tmp_path / "prices.py")
