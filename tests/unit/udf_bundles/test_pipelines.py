"""Bundles in pipeline files: from YAML to rows."""

import hashlib
import threading
from dataclasses import replace

import fsspec
import pytest
from arroyo_testing import run_in_process

from arroyo_core.api import Origin
from arroyo_core.errors import InvalidPipelineError, OperatorError
from arroyo_core.pipeline import UdfKind, plan_pipeline
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.state.failures import StorageError
from arroyo_core.udf import udf
from arroyo_core.udf.failures import BundleError, DigestMismatchError

SHOUT = """
from arroyo_core.udf import udf

__version__ = "{version}"


@udf
def shout(text: str) -> str:
    return text + "{mark}"
"""


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def plan(plugins):
    def make(path, *, insecure=False):
        return plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener(allows_unpinned=insecure))

    return make


@pytest.fixture
def mistakes(plan):
    def find(path, **options):
        with pytest.raises(InvalidPipelineError) as caught:
            plan(path, **options)
        return caught.value.errors

    return find


@pytest.fixture
def remote(request):
    """A store in the memory of this process."""
    store = fsspec.filesystem("memory")
    folder = f"/{request.node.name}"

    class Remote:
        url = f"memory:/{folder}"

        def put(self, name, data):
            store.pipe_file(f"{folder}/{name}", data)
            return f"{self.url}/{name}"

        def remove(self, name):
            store.rm_file(f"{folder}/{name}")

    return Remote()


def test_a_local_bundle_is_called_by_its_functions_own_names(make_bundle, pipeline, plugins, seen):
    path = pipeline([f"{{url: {make_bundle()}}}"], "greet")
    run_in_process(path, plugins=plugins)
    assert seen == ["hello n0", "hello n1", "hello n2"]


def test_two_versions_in_one_pipeline_give_each_its_own_answer(make_bundle, pipeline, plugins, seen):
    old = make_bundle(SHOUT.format(version="1", mark="!"), name="shouting")
    new = make_bundle(SHOUT.format(version="2", mark="?"), name="shouting")
    path = pipeline([f"{{url: {old}, as: v1}}", f"{{url: {new}, as: v2}}"], "v1.shout", "v2.shout", "v1.shout")
    run_in_process(path, plugins=plugins)
    assert seen == ["n0!?!", "n1!?!", "n2!?!"]


def test_the_plan_pins_the_digest_and_never_holds_the_code(make_bundle, pipeline, plan):
    bundle = make_bundle()
    (pin,) = plan(pipeline([f"{{url: {bundle}, as: g}}"], "g.greet")).udfs
    assert (pin.kind, pin.name, pin.version, pin.alias) == (UdfKind.BUNDLE, "greeting", "1.0", "g")
    assert pin.sha256 == sha256(bundle)
    assert pin.url == str(bundle)
    assert pin.signatures == ("g.greet(name: string) -> string",)
    assert pin.content is None


def test_a_remote_bundle_needs_its_digest(make_bundle, pipeline, remote, mistakes, plan):
    url = remote.put("greeting.zip", make_bundle().read_bytes())
    path = pipeline([f'{{url: "{url}"}}'], "greet")
    first, *_ = mistakes(path)
    assert "a remote bundle needs its 'sha256'" in first.message
    assert (first.at.line, first.at.column) == (3, 5)
    (pin,) = plan(path, insecure=True).udfs
    assert pin.sha256 == sha256(make_bundle())


def test_a_remote_bundle_that_was_changed_is_refused(make_bundle, pipeline, remote, mistakes):
    bundle = make_bundle()
    expected = sha256(bundle)
    url = remote.put("greeting.zip", make_bundle(SHOUT.format(version=1, mark=".")).read_bytes())
    first, *_ = mistakes(pipeline([f'{{url: "{url}", sha256: {expected}}}'], "greet"))
    assert f"not {expected}" in first.message
    assert "it was changed or is damaged" in first.message
    assert first.at.column == 11


def test_a_local_bundle_with_another_digest_is_refused(make_bundle, pipeline, mistakes):
    first, *_ = mistakes(pipeline([f"{{url: {make_bundle()}, sha256: {'0' * 64}}}"], "greet"))
    assert "it was changed or is damaged" in first.message


def test_what_is_in_the_cache_is_used_when_the_store_has_it_no_more(make_bundle, pipeline, remote, plugins, seen):
    data = make_bundle().read_bytes()
    url = remote.put("greeting.zip", data)
    path = pipeline([f'{{url: "{url}", sha256: {hashlib.sha256(data).hexdigest()}}}'], "greet")
    run_in_process(path, plugins=plugins)
    remote.remove("greeting.zip")
    run_in_process(path, plugins=plugins)
    assert len(seen) == 6


def test_a_bundle_that_is_not_there_is_a_mistake_at_its_url(pipeline, mistakes, tmp_path):
    first, *_ = mistakes(pipeline([f"{{url: {tmp_path}/none.zip}}"], "greet"))
    assert first.message.startswith(f"there is no bundle at {tmp_path}/none.zip")
    assert (first.at.line, first.at.column) == (3, 11)


def test_a_device_is_no_bundle(pipeline, mistakes):
    first, *_ = mistakes(pipeline(["{url: /dev/zero}"], "greet"))
    assert first.message == "/dev/zero is not a regular file"


def test_a_bundle_that_is_too_large_is_not_read(make_bundle, pipeline, mistakes, monkeypatch):
    path = make_bundle()
    monkeypatch.setenv("ARROYO_MAX_BUNDLE_BYTES", "10")
    first, *_ = mistakes(pipeline([f"{{url: {path}}}"], "greet"))
    assert "is too large: at most 10B in a bundle" in first.message


def test_a_task_runs_what_was_planned_though_the_file_changed(make_bundle, pipeline, plan, plugins, seen):
    path = make_bundle(SHOUT.format(version="1", mark="!"), name="shouting")
    planned = plan(pipeline([f"{{url: {path}}}"], "shout"))
    path.write_bytes(make_bundle(SHOUT.format(version="1", mark="?"), name="shouting").read_bytes())
    run_in_process(planned, plugins=plugins)
    assert seen == ["n0!", "n1!", "n2!"]


def test_a_task_without_a_cache_refuses_a_file_that_changed(make_bundle, pipeline, plan, plugins, monkeypatch):
    path = make_bundle(SHOUT.format(version="1", mark="!"), name="shouting")
    planned = plan(pipeline([f"{{url: {path}}}"], "shout"))
    path.write_bytes(make_bundle(SHOUT.format(version="1", mark="?"), name="shouting").read_bytes())
    monkeypatch.setenv("ARROYO_UDF_CACHE", "off")
    with pytest.raises(DigestMismatchError, match="it was changed or is damaged"):
        plugins_for(planned, plugins)


def test_a_task_that_finds_no_bundle_ends_the_job_with_what_is_missing(
    make_bundle, pipeline, plan, plugins, monkeypatch
):
    bundle = make_bundle(SHOUT.format(version="9", mark="!"), name="gone")
    planned = plan(pipeline([f"{{url: {bundle}}}"], "shout"))
    bundle.unlink()
    monkeypatch.setenv("ARROYO_UDF_CACHE", "off")
    with pytest.raises(BundleError, match=r"there is no bundle at .*gone-9.*; tasks on other machines cannot read it"):
        run_in_process(planned, plugins=plugins)


def test_an_error_in_a_bundle_names_it_with_its_digest_and_line(make_bundle, pipeline, plugins):
    source = """
    from arroyo_core.udf import udf

    @udf
    def broken(name: str) -> str:
        return name[99]
    """
    bundle = make_bundle(source, name="breaking")
    with pytest.raises(OperatorError) as caught:
        run_in_process(pipeline([f"{{url: {bundle}}}"], "broken"), plugins=plugins)
    text = f"{caught.value}\n{caught.value.traceback}"
    assert f"bundle breaking 0 (sha256 {sha256(bundle)[:12]})" in text
    assert "return name[99]" in text
    assert "operator 'call0'" in text


def test_functions_with_other_signatures_than_planned_are_refused(make_bundle, pipeline, plan, plugins):
    planned = plan(pipeline([f"{{url: {make_bundle()}}}"], "greet"))
    pin = replace(planned.udfs[0], signatures=("greet(name: int64) -> string",))
    with pytest.raises(BundleError, match=r"planned with greet\(name: int64\).*but has greet\(name: string\)"):
        plugins_for(replace(planned, udfs=(pin,)), plugins)


def test_the_functions_of_a_plan_are_loaded_once_for_all_threads(make_bundle, pipeline, plan, plugins):
    planned = plan(pipeline([f"{{url: {make_bundle()}}}"], "greet"))
    found = []
    threads = [threading.Thread(target=lambda: found.append(plugins_for(planned, plugins))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(plugin_set) for plugin_set in found}) == 1


def test_a_function_that_two_bundles_have_is_an_error_naming_both(make_bundle, pipeline, mistakes):
    one = make_bundle(name="one")
    two = make_bundle(name="two")
    (error,) = mistakes(pipeline([f"{{url: {one}}}", f"{{url: {two}}}"], "greet"))
    assert "UDF 'greet' is registered twice: by bundle one 1.0 and by bundle two 1.0" in error.message
    assert "'as' puts a prefix before its names" in error.message
    assert error.at.line == 4


def test_a_function_that_a_distribution_has_is_an_error_naming_both(make_bundle, pipeline, plugins, mistakes):
    @udf
    def greet(name: str) -> str:
        return name

    with plugins.registry.registering(Origin("acme-udfs", "3.1")):
        plugins.registry.add_udf(greet)
    (error,) = mistakes(pipeline([f"{{url: {make_bundle()}}}"], "greet"))
    assert "by acme-udfs 3.1 and by bundle greeting 1.0" in error.message


def test_two_bundles_of_one_name_need_aliases(make_bundle, pipeline, mistakes):
    old = make_bundle(SHOUT.format(version="1", mark="!"), name="shouting")
    new = make_bundle(SHOUT.format(version="2", mark="?"), name="shouting")
    (error,) = mistakes(pipeline([f"{{url: {old}}}", f"{{url: {new}}}"], "shout"))
    assert "two bundles are called 'shouting'" in error.message


@pytest.mark.parametrize(
    ("entry", "column", "fragment"),
    [
        ("{sha256: abc, url: x.zip}", 14, "64 hexadecimal digits"),
        ("{url: x.zip, as: 1st}", 22, "begins with a letter"),
        ("{url: x.zip, as: ${HOME}}", 22, "'as' cannot be read from the environment"),
        ("{url: ''}", 11, "'url' must not be empty"),
        ("{url: }", 6, "'url' of udfs[0] must not be empty"),
        ("{sha256: " + "a" * 64 + "}", 5, "needs the key 'url'"),
        ("{url: x.zip, sha265: a}", 18, "has no key 'sha265'"),
        ("x.zip", 5, "must be a mapping with the keys url, sha256, as"),
    ],
)
def test_each_key_is_checked_with_its_place(pipeline, plugins, entry, column, fragment):
    with pytest.raises(InvalidPipelineError) as caught:
        plan_pipeline(
            pipeline([entry.replace("${HOME}", '"${HOME}"')]),
            plugins=plugins,
            environment={"HOME": "here"},
            bundles=BundleOpener(),
        )
    assert any(
        fragment in error.message and (error.at.line, error.at.column) == (3, column) for error in caught.value.errors
    ), caught.value.errors


def test_a_password_in_a_url_is_in_no_error(pipeline, plugins, monkeypatch):
    def refuse(url):
        raise StorageError(f"cannot read {url}: refused")

    monkeypatch.setattr("arroyo_core.runtime.user_code.read_url", refuse)
    path = pipeline(['{url: "s3://me:${SECRET}@there/x.zip", sha256: ' + "0" * 64 + "}"])
    with pytest.raises(InvalidPipelineError) as caught:
        plan_pipeline(path, plugins=plugins, environment={"SECRET": "hunter2"}, bundles=BundleOpener())
    assert "hunter2" not in str(caught.value)
    assert "s3://me:${SECRET}@there/x.zip" in str(caught.value)


def test_distributions_whose_functions_are_used_are_pinned(pipeline, plugins, plan):
    @udf
    def tidy(name: str) -> str:
        return name

    @udf
    def other(name: str) -> str:
        return name

    with plugins.registry.registering(Origin("acme-udfs", "3.1")):
        plugins.registry.add_udf(tidy)
    with plugins.registry.registering(Origin("acme-more", "1.0")):
        plugins.registry.add_udf(other)
    (pin,) = plan(pipeline([], "tidy")).udfs
    assert (pin.kind, pin.name, pin.version) == (UdfKind.DISTRIBUTION, "acme-udfs", "3.1")
    planned = plan(pipeline([], "tidy"))
    other_version = replace(planned, udfs=(replace(planned.udfs[0], version="3.0"),))
    with pytest.raises(
        Exception, match=r"planned with functions of acme-udfs 3\.0, but this executor has acme-udfs 3\.1"
    ):
        plugins_for(other_version, plugins)


def test_a_pickle_is_no_bundle_for_a_pipeline_file(pipeline, mistakes, tmp_path):
    from arroyo_core.udf.archive import write_archive
    from arroyo_core.udf.bundle import PICKLE
    from arroyo_core.udf.manifest import MANIFEST, ContentKind, Manifest

    evil = b"cposix\nsystem\n(S'touch " + str(tmp_path / "owned").encode() + b"'\ntR."
    manifest = Manifest(name="x", version="3.11", content=ContentKind.PICKLE)
    (tmp_path / "x.zip").write_bytes(write_archive({PICKLE: evil, MANIFEST: manifest.encode()}))
    first, *_ = mistakes(pipeline([f"{{url: {tmp_path}/x.zip}}"]))
    assert "only the program that made them can use them" in first.message
    assert not (tmp_path / "owned").exists()
