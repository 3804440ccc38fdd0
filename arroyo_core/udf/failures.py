"""The errors of bundles; each names the bundle, and says what can be done."""

from __future__ import annotations

from arroyo_core.errors import PluginError


class BundleError(PluginError):
    """A bundle of user functions cannot be used: it is damaged, does not fit this environment, or is not trusted."""


class UnsafeBundleError(BundleError):
    """An archive holds what no honest bundle does: paths that leave it, links, or more data than is allowed."""


class DigestMismatchError(BundleError):
    """The content is not what its sha256 says."""


class UntrustedBundleError(BundleError):
    """A trust file is configured, and the bundle has no signature of a key in it."""
