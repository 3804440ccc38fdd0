"""Columns of latitudes and longitudes in degrees, as numpy arrays that were checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Latitude and longitude, in degrees.
POINT = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])


@dataclass(frozen=True, slots=True)
class Points:
    """Places, with 0 for both numbers where one is null. Longitudes are from -180 up to, not with, 180."""

    lats: Floats
    lons: Floats
    is_null: Mask

    def __len__(self) -> int:
        return len(self.lats)


@udf(arguments=[pa.float64(), pa.float64()], returns=pa.bool_())
def geo_is_valid(lat: pa.Array, lon: pa.Array) -> pa.Array:
    """Whether the other functions accept this place: a latitude from -90 to 90, a longitude from -180 to 360."""
    lats, lons = (pc.fill_null(each, 0).to_numpy() for each in (lat, lon))
    return pa.array(_is_latitude(lats) & _is_longitude(lons), mask=null_mask(lat, lon))


def read_points(lat: pa.Array, lon: pa.Array) -> Points:
    """Raises `ValueError` for the first place that is not on Earth; longitudes of both conventions are accepted."""
    is_null = null_mask(lat, lon)
    lats, lons = (np.where(is_null, 0.0, pc.fill_null(each, 0).to_numpy()) for each in (lat, lon))
    _check(lats, _is_latitude(lats), "latitude", "from -90 to 90")
    _check(lons, _is_longitude(lons), "longitude", "from -180 to 360")
    return Points(lats, np.where(lons >= 180, lons - 360, lons), is_null)


def null_mask(*columns: pa.Array) -> Mask:
    """Where any of the columns is null."""
    masks = [pc.is_null(column).to_numpy(zero_copy_only=False) for column in columns]
    mask: Mask = np.logical_or.reduce(masks)
    return mask


def point_array(lats: Floats, lons: Floats, is_null: Mask) -> pa.Array:
    """Places as values of `POINT`."""
    return pa.StructArray.from_arrays([pa.array(lats), pa.array(lons)], fields=list(POINT), mask=pa.array(is_null))


def constant_of(column: pa.Array) -> Any:
    """The one value that all rows have, as settings mostly do; None where they differ, or where one is null."""
    if len(column) == 0 or column.null_count or not pc.all(pc.equal(column, column[0])).as_py():
        return None
    return column[0].as_py()


def _is_latitude(values: Floats) -> Mask:
    return np.abs(values) <= 90


def _is_longitude(values: Floats) -> Mask:
    return (values >= -180) & (values <= 360)


def _check(values: Floats, is_good: Mask, what: str, allowed: str) -> None:
    if not is_good.all():
        raise ValueError(f"{what} {values[~is_good][0]} is not {allowed} degrees")
