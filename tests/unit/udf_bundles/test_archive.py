"""Archives that an honest build never makes."""

import contextlib
import io
import stat
import warnings
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.udf.archive import read_archive, write_archive
from arroyo_core.udf.bundle import parse_bundle
from arroyo_core.udf.failures import BundleError, UnsafeBundleError
from arroyo_core.udf.manifest import MANIFEST, Manifest


def zipped(*entries, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as target:
        for info, data in entries:
            target.writestr(info, data)
    return buffer.getvalue()


def link(name, target):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../up.py", "a/../../up.py", "a//b.py", "./a.py", "a\\..\\b.py", "C:/a.py", "a\nb.py", "a/."],
)
def test_paths_that_leave_the_archive_are_refused(name):
    info = zipfile.ZipInfo("x")
    info.filename = name
    with pytest.raises(UnsafeBundleError, match="not a plain relative path"):
        read_archive(zipped((info, b"x")), what="evil.zip")


def test_a_name_cut_at_a_nul_is_refused():
    data = zipped(("good.py_x", b"x")).replace(b"good.py_x", b"good.py\0x")
    with pytest.raises(UnsafeBundleError, match="not a plain relative path"):
        read_archive(data, what="evil.zip")


def test_links_are_refused():
    with pytest.raises(UnsafeBundleError, match="a link or a special file"):
        read_archive(zipped(link("module.py", "/etc/passwd")), what="evil.zip")


def test_a_file_that_is_there_twice_is_refused():
    with pytest.warns(UserWarning, match="Duplicate"):
        data = zipped(("a.py", b"1"), ("a.py", b"2"))
    with pytest.raises(UnsafeBundleError, match=r"'a\.py' twice"):
        read_archive(data, what="evil.zip")


def test_a_bomb_is_refused_before_it_is_unpacked():
    data = zipped(*((f"{number}.py", b"\0" * 2**20 * 30) for number in range(9)))
    assert len(data) < 10**6
    with pytest.raises(UnsafeBundleError, match="would unpack to 283115520 bytes"):
        read_archive(data, what="bomb.zip")


def test_a_bomb_that_lies_about_its_size_unpacks_to_what_it_says_at_most():
    data = zipped(("a.py", b"\0" * 10**6))
    real = (10**6).to_bytes(4, "little")
    assert data.count(real) == 2
    with pytest.raises(BundleError, match=r"no readable zip archive|CRC"):
        read_archive(data.replace(real, (10).to_bytes(4, "little")), what="bomb.zip")


def test_too_many_files_and_too_many_bytes_are_refused(monkeypatch):
    data = write_archive({f"{number}.py": b"" for number in range(11)})
    monkeypatch.setenv("ARROYO_MAX_BUNDLE_FILES", "10")
    with pytest.raises(UnsafeBundleError, match="has 11 files; at most 10"):
        read_archive(data, what="x")
    monkeypatch.setenv("ARROYO_MAX_BUNDLE_BYTES", "100")
    with pytest.raises(UnsafeBundleError, match="at most 100 are allowed"):
        read_archive(data, what="x")


@pytest.mark.parametrize("cut", [0, 1, 30, 100, -1, -30])
def test_a_cut_archive_is_a_clear_error(cut):
    data = write_archive({"a.py": b"x = 1\n" * 20})
    with pytest.raises(BundleError, match=r"cut\.zip is not a readable zip archive"):
        read_archive(data[:cut], what="cut.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(method):
    with pytest.raises(UnsafeBundleError, match="neither stored nor deflated"):
        read_archive(zipped(("a.py", b"x" * 100), method=method), what="odd.zip")


_HONEST = zipped(
    ("x.py", b"def f(x):\n    return x\n" * 20),
    (MANIFEST, Manifest(name="x", version="1", modules=("x",)).encode()),
)


@given(
    changes=st.lists(st.tuples(st.integers(0, len(_HONEST) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.none() | st.integers(0, len(_HONEST)),
)
@settings(max_examples=500, deadline=None)
def test_a_damaged_bundle_is_read_or_refused_and_nothing_else(changes, cut):
    data = bytearray(_HONEST)
    for place, byte in changes:
        data[place] = byte
    with contextlib.suppress(BundleError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert parse_bundle(bytes(data[:cut]), expected_sha256=None, what="x").manifest.format == 1


def test_equal_files_give_equal_bytes_in_any_order():
    assert write_archive({"a": b"1", "b": b"2"}) == write_archive({"b": b"2", "a": b"1"})


def test_compiled_code_is_refused():
    manifest = Manifest(name="x", version="1", modules=("x",)).encode()
    data = write_archive({MANIFEST: manifest, "x.py": b"", "fast.so": b"\x7fELF"})
    with pytest.raises(BundleError, match=r"compiled code \(fast\.so\): bundles are pure Python"):
        parse_bundle(data, expected_sha256=None, what="x.zip")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x.py": b""}, r"has no arroyo-udf\.json"),
        ({MANIFEST: b"{}", "x-1.dist-info/" + MANIFEST: b"{}"}, r"has 2 arroyo-udf\.json"),
        ({MANIFEST: b"[1]"}, "cannot be read"),
        ({MANIFEST: b"\xff"}, "cannot be read"),
        ({MANIFEST: b'{"format": 2}'}, "has format 2, and this arroyo-core reads 1"),
        ({MANIFEST: b'{"format": 1, "name": 5}'}, r"Expected `str`, got `int` - at `\$\.name`"),
        ({MANIFEST: Manifest(name="../x", version="1").encode()}, r"'\.\./x' in arroyo-udf\.json is not a name"),
        ({MANIFEST: Manifest(name="x", version="1\n2").encode()}, r"'1\\n2' in arroyo-udf\.json is not a name"),
        ({MANIFEST: Manifest(name="", version="1").encode()}, r"'' in arroyo-udf\.json is not a name"),
        ({MANIFEST: Manifest(name="x", version="1").encode()}, "names modules that are not there: none at all"),
        ({MANIFEST: Manifest(name="x", version="1", modules=("y",)).encode()}, "not there: y"),
    ],
)
def test_a_manifest_that_is_wrong_is_a_clear_error(files, message):
    with pytest.raises(BundleError, match=message):
        parse_bundle(write_archive(files), expected_sha256=None, what="x.zip")
