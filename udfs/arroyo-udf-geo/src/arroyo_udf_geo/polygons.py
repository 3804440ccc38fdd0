"""Points in polygons: planar, in degrees, by shapely."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.udf import udf
from arroyo_udf_geo.points import Mask, Points, constant_of, null_mask, read_points

#: Of a polygon that is wrong, this much is shown.
_SHOWN = 80


@udf(arguments=[pa.float64(), pa.float64(), pa.string()], returns=pa.bool_())
def geo_in_polygon(lat: pa.Array, lon: pa.Array, polygon: pa.Array) -> pa.Array:
    """Whether a place lies in a polygon or on its edge: WKT or GeoJSON, longitude first.

    Edges are straight lines on a map of degrees. A polygon across the antimeridian goes on beyond 180 (or below
    -180), or is a multipolygon cut there.
    """
    points = read_points(lat, lon)
    is_null = points.is_null | null_mask(polygon)
    constant = constant_of(polygon)
    if constant is not None:
        return pa.array(_covers(_prepared(constant), points), mask=is_null)
    encoded = polygon.dictionary_encode()
    shapes = np.array([_prepared(text) for text in encoded.dictionary.to_pylist()] or [None], dtype=object)
    codes = encoded.indices.fill_null(0).to_numpy()
    return pa.array(_covers(shapes[codes], points), mask=is_null)


def _covers(shapes: Any, points: Points) -> Mask:
    shapely = _shapely()
    inside: Mask = shapely.intersects_xy(shapes, points.lons, points.lats)
    bounds = shapely.bounds(shapes)
    if np.any(bounds[..., 2] > 180):
        inside |= shapely.intersects_xy(shapes, points.lons + 360, points.lats)
    if np.any(bounds[..., 0] < -180):
        inside |= shapely.intersects_xy(shapes, points.lons - 360, points.lats)
    # A longitude of 180 was read as -180: both are the same line.
    is_edge = points.lons == -180
    if is_edge.any():
        inside |= is_edge & shapely.intersects_xy(shapes, 180.0, points.lats)
    return inside


@cache
def _shapely() -> Any:
    import shapely  # type: ignore[import-untyped]

    return shapely


@lru_cache(maxsize=1024)
def _prepared(text: str) -> Any:
    """The polygon, with an index over its edges; raises `ValueError` for what is none."""
    shapely = _shapely()
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    try:
        shape = shapely.from_geojson(text) if text.lstrip().startswith("{") else shapely.from_wkt(text)
    except shapely.errors.GEOSException as error:
        raise ValueError(f"polygon {shown!r} is neither WKT nor GeoJSON: {error}") from error
    if shape.geom_type not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"{shown!r} is a {shape.geom_type}, not a Polygon or a MultiPolygon")
    if not shape.is_valid:
        raise ValueError(f"polygon {shown!r} is not valid: {shapely.is_valid_reason(shape)}")
    shapely.prepare(shape)
    return shape
