"""The functions that are measured, bare: what is compared only declares them differently."""

from __future__ import annotations

import asyncio
import math

import pyarrow as pa
import pyarrow.compute as pc

LATENCY_S = 0.02
_DEGREE = 0.017453292519943295


def distance(lat: pa.Array, lon: pa.Array) -> pa.Array:
    """Kilometres from Greenwich, by the haversine formula, for columns."""
    lat_r, lon_r = pc.multiply(lat, _DEGREE), pc.multiply(lon, _DEGREE)
    home = 51.4769 * _DEGREE
    by_lat = pc.power(pc.sin(pc.divide(pc.subtract(lat_r, home), 2.0)), 2)
    by_lon = pc.power(pc.sin(pc.divide(lon_r, 2.0)), 2)
    chord = pc.add(by_lat, pc.multiply(pc.multiply(pc.cos(lat_r), 0.6229), by_lon))
    return pc.multiply(pc.asin(pc.sqrt(pc.min_element_wise(chord, 1.0))), 12742.0)


def distance_of_one(lat: float, lon: float) -> float:
    """The same for one row, as one writes it without columns."""
    home = 51.4769 * _DEGREE
    by_lat = math.sin((lat * _DEGREE - home) / 2) ** 2
    by_lon = math.sin(lon * _DEGREE / 2) ** 2
    return math.asin(math.sqrt(min(by_lat + math.cos(lat * _DEGREE) * 0.6229 * by_lon, 1.0))) * 12742.0


def slug(title: str) -> str:
    """A title as part of a URL: small letters and digits, joined by dashes, for one row."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def initials(title: str) -> str:
    """As cheap as a function gets that is worth writing."""
    return title[:3].upper()


async def look_up(number: int) -> int:
    await asyncio.sleep(LATENCY_S)
    return number + 1
