"""Registers the functions of places."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_register(registry: Registry) -> None:
    from arroyo_udf_geo import cells, geohash, points, polygons, sphere

    for function in (
        points.geo_is_valid,
        sphere.geo_bearing,
        sphere.geo_destination,
        sphere.geo_distance_m,
        geohash.geo_hash,
        geohash.geo_hash_neighbours,
        geohash.geo_hash_point,
        cells.geo_cell,
        cells.geo_cell_boundary,
        cells.geo_cell_disk,
        cells.geo_cell_from_text,
        cells.geo_cell_parent,
        cells.geo_cell_point,
        cells.geo_cell_resolution,
        cells.geo_cell_text,
        polygons.geo_in_polygon,
    ):
        registry.add_udf(function)
