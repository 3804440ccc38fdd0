"""User functions from bundles: opened on the driver when a pipeline is planned, and in tasks as the plan pins them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from arroyo_core.api.limits import BUNDLE_BYTES
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.plan import Plan, UdfKind, UdfPin
from arroyo_core.pipeline.udfs import OpenedBundle, is_local, plugins_with
from arroyo_core.plugin import PluginSet
from arroyo_core.state import StorageProvider, get_storage_provider, paths
from arroyo_core.state.failures import MissingFileError, StorageError
from arroyo_core.udf.artifact_cache import default_artifact_cache, fetch_verified
from arroyo_core.udf.bundle import Bundle, parse_bundle
from arroyo_core.udf.failures import BundleError, UntrustedBundleError
from arroyo_core.udf.loading import LoadedBundle, load_bundle
from arroyo_core.udf.manifest import ContentKind
from arroyo_core.udf.signing import SIGNATURE_SUFFIX, check_trusted, configured_trust
from arroyo_core.udf.user_function import UserFunction

#: How many plans a process remembers the functions of.
_REMEMBERED = 8

_SEPARATORS = re.compile("[-_+]+")

_remembered: dict[tuple[tuple[UdfPin, ...], int], tuple[PluginSet, PluginSet]] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class PinnedBundle:
    """Functions as a pipeline calls them, and their pin."""

    pin: UdfPin
    functions: Sequence[UserFunction] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOpener:
    """Opens the bundles of a pipeline file, through the cache of this host."""

    #: Take remote bundles as they are, where the file gives no sha256.
    allows_unpinned: bool = False
    #: Functions of the program that makes the plan.
    pickled: Sequence[OpenedBundle] = ()

    def open(self, url: str, *, shown_url: str, sha256: str | None, alias: str | None) -> PinnedBundle:
        """Fetch, verify and import a bundle; a local one is pinned by what the file holds now."""
        location = _absolute(url)
        data = _fetch(location, shown_url) if sha256 is None else _cached(location, shown_url, sha256)
        bundle = parse_bundle(data, expected_sha256=sha256, what=shown_url)
        if bundle.manifest.content is not ContentKind.MODULES:
            raise BundleError(f"{shown_url} holds pickled functions: only the program that made them can use them")
        _check_trust(bundle, data, location, shown_url)
        if sha256 is None and configured_trust() is not None:
            _check_name(bundle, location, shown_url)
        cache = default_artifact_cache()
        if sha256 is None and cache is not None:
            # Tasks on this host need not find the file as it is now.
            cache.put(data)
        loaded = load_bundle(bundle)
        functions = loaded.functions_as(alias)
        pin = UdfPin(
            kind=UdfKind.BUNDLE,
            name=loaded.manifest.name,
            version=loaded.manifest.version,
            sha256=loaded.sha256,
            url=location,
            shown_url=shown_url,
            alias=alias,
            signatures=_signatures(functions),
        )
        return PinnedBundle(pin, functions)


def open_pickled(function: UserFunction) -> PinnedBundle:
    """A function of this program, as tasks will load it; raises `BundleError` for one that cannot be sent."""
    # Only the driver pickles.
    from arroyo_core.udf.pickled import pickle_function

    data = pickle_function(function)
    bundle = parse_bundle(data, expected_sha256=None, what=f"the function {function.name!r}")
    # Loaded here as well: what cannot be loaded shows before anything runs.
    functions = load_bundle(bundle).functions_as(None)
    pin = UdfPin(
        kind=UdfKind.PICKLE,
        name=bundle.manifest.name,
        version=bundle.manifest.version,
        sha256=bundle.sha256,
        signatures=_signatures(functions),
        identity=bundle.manifest.code_sha256,
        content=data,
    )
    return PinnedBundle(pin, functions)


def store_pickled(plan: Plan) -> Plan:
    """Put the pickles of a plan into the job's folder, so that the plan need not carry them to every task.

    Without a checkpoint url there is no such folder, and the plan stays as it is.
    """
    if plan.checkpoint.url is None or all(pin.content is None for pin in plan.udfs):
        return plan
    storage = get_storage_provider(plan.checkpoint.url)
    pins = []
    for pin in plan.udfs:
        if pin.content is not None:
            path = paths.pickled_udf(plan.job_id, pin.sha256)
            storage.put_if_absent(path, pin.content)
            url = _absolute(f"{storage.url}/{path}")
            pin = replace(pin, content=None, url=url, shown_url=path)
        pins.append(pin)
    return replace(plan, udfs=tuple(pins))


def load_pinned(pins: tuple[UdfPin, ...], plugins: PluginSet) -> PluginSet:
    """What `plugins_for` gives; remembered for the process."""
    key = (pins, id(plugins))
    with _lock:
        known = _remembered.get(key)
        if known is None or known[0] is not plugins:
            known = (plugins, _load(pins, plugins))
            while len(_remembered) >= _REMEMBERED:
                del _remembered[next(iter(_remembered))]
            _remembered[key] = known
        return known[1]


def read_url(url: str) -> bytes:
    """A whole file anywhere, up to the limit of bundles; raises `BundleError` for a larger one."""
    storage, name = storage_of(url)
    if is_local(url):
        path = Path(_absolute(url).removeprefix("file://").removeprefix("local://"))
        if path.exists() and not path.is_file():
            raise BundleError(f"{url} is not a regular file")
    data: bytes = storage.read_parts(name, lambda stream: stream.read(BUNDLE_BYTES.value + 1))
    if len(data) > BUNDLE_BYTES.value:
        raise BundleError(f"{url} is too large: {BUNDLE_BYTES.hint}")
    return data


def storage_of(url: str) -> tuple[StorageProvider, str]:
    """Where a file is, and its name there."""
    folder, slash, name = url.rpartition("/")
    if not name or not slash:
        raise BundleError(f"{url!r} names no file")
    return get_storage_provider(folder or "/"), name


def _load(pins: Sequence[UdfPin], plugins: PluginSet) -> PluginSet:
    installed = plugins
    for pin in pins:
        if pin.kind is UdfKind.DISTRIBUTION:
            _check_distribution(pin, installed)
            continue
        loaded = _load_pin(pin)
        functions = loaded.functions_as(pin.alias)
        found = _signatures(functions)
        if found != pin.signatures:
            raise BundleError(f"{pin} was planned with {', '.join(pin.signatures)}, but has {', '.join(found)} here")
        plugins = plugins_with(plugins, PinnedBundle(pin, functions))
    return plugins


def _load_pin(pin: UdfPin) -> LoadedBundle:
    if pin.content is not None:
        return load_bundle(parse_bundle(pin.content, expected_sha256=pin.sha256, what=str(pin)))
    if pin.url is None:
        raise BundleError(f"{pin} is in the plan without its content and without a URL")
    data = _cached(pin.url, pin.shown_url, pin.sha256)
    bundle = parse_bundle(data, expected_sha256=pin.sha256, what=str(pin))
    if (bundle.manifest.content is ContentKind.PICKLE) is not (pin.kind is UdfKind.PICKLE):
        raise BundleError(f"{pin} holds {bundle.manifest.content}, which is not what the plan says")
    if pin.kind is UdfKind.BUNDLE:
        _check_trust(bundle, data, pin.url, pin.shown_url)
    return load_bundle(bundle)


def _check_distribution(pin: UdfPin, plugins: PluginSet) -> None:
    found = {
        plugins.registry.udf_origin(name).version
        for name in plugins.registry.udfs
        if plugins.registry.udf_origin(name).distribution == pin.name
    }
    if found != {pin.version}:
        here = f"{pin.name} {', '.join(found)}" if found else "no such distribution"
        raise PluginError(
            f"the pipeline was planned with functions of {pin.name} {pin.version}, but this executor has {here}: "
            "install the same version on the driver and on every executor"
        )


def _check_trust(bundle: Bundle, data: bytes, url: str, shown_url: str) -> None:
    trust = configured_trust()
    if trust is None:
        return
    cache = default_artifact_cache()
    kept = cache.read_signature(bundle.sha256) if cache is not None else None
    if kept is not None:
        with contextlib.suppress(UntrustedBundleError):
            check_trusted(data, kept, trust, what=str(bundle))
            return
    signature = _read_optional(f"{url}{SIGNATURE_SUFFIX}", f"{shown_url}{SIGNATURE_SUFFIX}")
    check_trusted(data, signature, trust, what=str(bundle))
    if cache is not None and signature is not None:
        cache.put_signature(bundle.sha256, signature)


def _check_name(bundle: Bundle, url: str, shown_url: str) -> None:
    """Raise `UntrustedBundleError` for a bundle under the name of another: a signature does not say which it is."""
    stem, _, kind = url.rpartition("/")[2].rpartition(".")
    # A wheel has three tags behind its version.
    found = stem.rsplit("-", 3)[0] if kind == "whl" else stem
    wanted = f"{bundle.manifest.name}-{bundle.manifest.version}"
    if _SEPARATORS.sub("-", found).lower() != _SEPARATORS.sub("-", wanted).lower():
        raise UntrustedBundleError(
            f"{shown_url} holds {bundle.manifest}, and is not called {wanted}.{kind}: any bundle of a trusted key "
            "could be there; give its 'sha256', or its own name to the file"
        )


def _cached(url: str, shown_url: str, sha256: str) -> bytes:
    def fetch() -> bytes:
        return _fetch(url, shown_url)

    cache = default_artifact_cache()
    if cache is None:
        return fetch_verified(sha256, fetch, what=shown_url)
    return cache.load(sha256, fetch, what=shown_url)


def _fetch(url: str, shown_url: str) -> bytes:
    return _shown_as(lambda: read_url(url), url, shown_url)


def _read_optional(url: str, shown_url: str) -> bytes | None:
    try:
        return _fetch(url, shown_url)
    except BundleError:
        return None


def _shown_as(read: Callable[[], bytes], url: str, shown_url: str) -> bytes:
    """Errors name the URL as it was written: the one that was read may hold a password."""
    try:
        return read()
    except MissingFileError as error:
        hint = "; tasks on other machines cannot read it: push it with `arroyo udf push`" if is_local(url) else ""
        raise BundleError(f"there is no bundle at {shown_url}{hint}") from error
    except (BundleError, StorageError) as error:
        raise type(error)(str(error).replace(url, shown_url)) from error


def _absolute(url: str) -> str:
    """A local path as tasks find it, whatever folder they run in."""
    if not is_local(url):
        return url
    path = url if "://" not in url else urlsplit(url).netloc + urlsplit(url).path
    return absolute_url(path)


def _signatures(functions: Sequence[UserFunction]) -> tuple[str, ...]:
    return tuple(sorted(function.signature for function in functions))
