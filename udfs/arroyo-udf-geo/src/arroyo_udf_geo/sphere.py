"""Distances and directions on a sphere with the Earth's mean radius."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_geo.points import POINT, null_mask, point_array, read_points

#: The mean radius of the Earth (IUGG).
EARTH_RADIUS_M = 6_371_008.8


@udf(arguments=[pa.float64()] * 4, returns=pa.float64())
def geo_distance_m(lat: pa.Array, lon: pa.Array, other_lat: pa.Array, other_lon: pa.Array) -> pa.Array:
    """Metres along the great circle (haversine). The Earth is not a sphere: the error is up to 0.5 %."""
    here, there = read_points(lat, lon), read_points(other_lat, other_lon)
    first, second = np.radians(here.lats), np.radians(there.lats)
    half_height = np.sin((second - first) / 2)
    half_width = np.sin(np.radians(there.lons - here.lons) / 2)
    chord = half_height**2 + np.cos(first) * np.cos(second) * half_width**2
    # Rounding may leave the chord of antipodes a little beyond 1.
    metres = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(chord, 1)))
    return pa.array(metres, mask=here.is_null | there.is_null)


@udf(arguments=[pa.float64()] * 4, returns=pa.float64())
def geo_bearing(lat: pa.Array, lon: pa.Array, other_lat: pa.Array, other_lon: pa.Array) -> pa.Array:
    """The direction in which the great circle to the other place begins: degrees from 0 (north) clockwise, below 360.

    0 for a place to itself.
    """
    here, there = read_points(lat, lon), read_points(other_lat, other_lon)
    first, second = np.radians(here.lats), np.radians(there.lats)
    width = np.radians(there.lons - here.lons)
    east = np.sin(width) * np.cos(second)
    north = np.cos(first) * np.sin(second) - np.sin(first) * np.cos(second) * np.cos(width)
    degrees = np.degrees(np.arctan2(east, north)) % 360
    is_same = (here.lats == there.lats) & (here.lons == there.lons)
    # A tiny negative angle becomes 360 itself.
    return pa.array(np.where(is_same | (degrees >= 360), 0.0, degrees), mask=here.is_null | there.is_null)


@udf(arguments=[pa.float64()] * 4, returns=POINT)
def geo_destination(lat: pa.Array, lon: pa.Array, bearing: pa.Array, distance_m: pa.Array) -> pa.Array:
    """The place that is reached from here along the great circle that begins in this direction."""
    here = read_points(lat, lon)
    is_null = here.is_null | null_mask(bearing, distance_m)
    direction, length = (np.where(is_null, 0.0, pc.fill_null(each, 0).to_numpy()) for each in (bearing, distance_m))
    for values, what in ((direction, "bearing"), (length, "distance")):
        if not np.isfinite(values).all():
            raise ValueError(f"{what} {values[~np.isfinite(values)][0]} is not a finite number")
    first, angle, turn = np.radians(here.lats), length / EARTH_RADIUS_M, np.radians(direction)
    sine = np.sin(first) * np.cos(angle) + np.cos(first) * np.sin(angle) * np.cos(turn)
    second = np.arcsin(np.clip(sine, -1, 1))
    width = np.arctan2(np.sin(turn) * np.sin(angle) * np.cos(first), np.cos(angle) - np.sin(first) * np.sin(second))
    lons = (here.lons + np.degrees(width) + 180) % 360 - 180
    return point_array(np.degrees(second), lons, is_null)
