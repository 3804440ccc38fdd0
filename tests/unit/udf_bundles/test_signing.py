"""Signatures and trust files, and pipelines that insist on them."""

import json
import sys

import pytest
from arroyo_devtools.bundles.signing import make_key, sign

from arroyo_core.cli.main import main
from arroyo_core.errors import InvalidPipelineError, SetupError
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.udf.failures import BundleError, UntrustedBundleError
from arroyo_core.udf.signing import check_trusted, read_trust


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "ana.key"
    line = make_key(path)
    (tmp_path / "trust").write_text(f"# who may sign\n{line}\n\n")
    return path


@pytest.fixture
def trust(key, tmp_path):
    return read_trust(tmp_path / "trust")


def test_a_signed_bundle_names_who_signed(key, trust):
    assert check_trusted(b"data", sign(b"data", key), trust, what="x") == "ana"


@pytest.mark.parametrize("changed", [b"", b"Data", b"data "])
def test_changed_data_is_not_what_was_signed(key, trust, changed):
    with pytest.raises(UntrustedBundleError, match="x is not what ana signed"):
        check_trusted(changed, sign(b"data", key), trust, what="x")


def test_a_key_that_is_not_trusted_is_named(key, trust, tmp_path):
    make_key(tmp_path / "eve.key")
    with pytest.raises(UntrustedBundleError, match=r"which is not in .*trust"):
        check_trusted(b"data", sign(b"data", tmp_path / "eve.key"), trust, what="x")


def test_a_trusted_key_does_not_make_another_ones_signature_good(key, trust, tmp_path):
    make_key(tmp_path / "eve.key")
    mixed = json.loads(sign(b"data", tmp_path / "eve.key"))
    mixed["public_key"] = json.loads(sign(b"data", key))["public_key"]
    with pytest.raises(UntrustedBundleError, match="does not fit"):
        check_trusted(b"data", json.dumps(mixed).encode(), trust, what="x")


@pytest.mark.parametrize(
    "signature", [b"", b"[]", b"{}", b"\xff", b'{"algorithm": "none"}', b'{"algorithm": "ed25519", "public_key": 5}']
)
def test_what_is_no_signature_is_refused(trust, signature):
    with pytest.raises(UntrustedBundleError):
        check_trusted(b"data", signature, trust, what="x")


def test_a_missing_signature_says_what_to_do(trust):
    with pytest.raises(UntrustedBundleError, match=r"is not signed .* sign it with `arroyo udf sign`"):
        check_trusted(b"data", None, trust, what="x")


@pytest.mark.parametrize("text", ["", "# nothing\n", "abc ana\n", "====\n"])
def test_a_trust_file_that_is_wrong_is_an_error(tmp_path, text):
    (tmp_path / "wrong").write_text(text)
    with pytest.raises(SetupError, match=r"has no keys|line 1: an Ed25519 key is 32 bytes"):
        read_trust(tmp_path / "wrong")
    with pytest.raises(SetupError, match="cannot be read"):
        read_trust(tmp_path / "none")


def test_a_key_is_closed_to_others_and_never_overwritten(key):
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BundleError, match="a key is not overwritten"):
        make_key(key)


def test_where_trust_is_configured_unsigned_bundles_are_refused_on_driver_and_executor(
    key, make_bundle, pipeline, plugins, tmp_path, monkeypatch, cache_folder
):
    bundle = make_bundle()
    path = pipeline([f"{{url: {bundle}}}"], "greet")
    unsigned = plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener())
    monkeypatch.setenv("ARROYO_UDF_TRUST", str(tmp_path / "trust"))
    with pytest.raises(InvalidPipelineError, match="is not signed"):
        plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener())
    with pytest.raises(UntrustedBundleError, match="is not signed"):
        plugins_for(unsigned, plugins)
    assert main(["udf", "sign", str(bundle), "--key", str(key)]) == 0
    plan = plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener())
    # Both are kept: neither is needed from the store any more.
    bundle.unlink()
    bundle.with_name(f"{bundle.name}.sig").unlink()
    assert "greet" in plugins_for(plan, plugins).registry.udfs


def test_a_signed_bundle_cannot_take_the_place_of_another(
    key, make_bundle, pipeline, plugins, tmp_path, monkeypatch, cache_folder
):
    """Both are signed by who is trusted; whoever can write to the store puts one where the other was."""
    wanted, other = make_bundle(), make_bundle(name="refunds")
    for bundle in (wanted, other):
        assert main(["udf", "sign", str(bundle), "--key", str(key)]) == 0
    monkeypatch.setenv("ARROYO_UDF_TRUST", str(tmp_path / "trust"))
    path = pipeline([f"{{url: {wanted}}}"], "greet")
    assert plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener()).udfs[0].name == "greeting"
    other.replace(wanted)
    other.with_name(f"{other.name}.sig").replace(wanted.with_name(f"{wanted.name}.sig"))
    with pytest.raises(
        InvalidPipelineError, match=r"holds refunds \S+, and is not called refunds-\S+\.zip: any bundle"
    ):
        plan_pipeline(path, plugins=plugins, environment={}, bundles=BundleOpener())


def test_without_the_extra_the_error_says_what_to_install(trust, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SetupError, match=r"pip install 'arroyo-core\[signing\]'"):
        check_trusted(b"data", b"{}", trust, what="x")
    assert main(["udf", "keygen", str(tmp_path / "new.key")]) == 2
    assert "arroyo-core[signing]" in capsys.readouterr().err


def test_the_commands_make_keys_sign_and_verify(make_bundle, tmp_path, capsys):
    bundle, key, trust = make_bundle(), tmp_path / "bo.key", tmp_path / "trusted"
    assert main(["udf", "keygen", str(key)]) == 0
    trust.write_text(capsys.readouterr().out)
    verify = ["udf", "verify", str(bundle), "--trust", str(trust)]
    assert main(verify) == 2
    assert "is not signed" in capsys.readouterr().err
    assert main(["udf", "sign", str(bundle), "--key", str(key)]) == 0
    assert capsys.readouterr().out == f"{bundle}.sig\n"
    assert main(verify) == 0
    assert "signed by bo" in capsys.readouterr().out
    bundle.write_bytes(bundle.read_bytes() + b"x")
    assert main(verify) == 2
    assert "is not what bo signed" in capsys.readouterr().err
