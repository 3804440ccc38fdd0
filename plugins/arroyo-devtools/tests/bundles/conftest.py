"""Bundles made on the spot, as the tests of the core make them."""

from tests.unit.udf_bundles.conftest import cache_folder, make_bundle, make_project

__all__ = ["cache_folder", "make_bundle", "make_project"]
