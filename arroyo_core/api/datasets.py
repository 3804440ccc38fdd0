"""What operators read and write outside, as catalogues of data name it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset by the naming rules of OpenLineage: `s3://bucket` and `orders`, `kafka://host:9092` and a topic."""

    namespace: str
    name: str

    @classmethod
    def at(cls, url: str) -> Dataset:
        """Files below a path or a URL; a password in it is left out."""
        parts = urlsplit(url)
        if "://" not in url or parts.scheme in ("file", "local"):
            return cls("file", parts.path if "://" in url else url)
        host = parts.netloc.rpartition("@")[2]
        return cls(f"{parts.scheme}://{host}", parts.path.strip("/") or "/")
