"""The library's catalogs, without what they let others choose: which code runs here, and where credentials go.

The library takes the class that opens files from the properties of a table, the class that logs in from what a REST
catalog answers, and imports either, whatever it is called. Whoever may write to a table, or answers for its catalog, is
trusted with rows; code, logins and places of stores are named by the pipeline alone, or come with a table from its REST
catalog, as the credentials for it do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from requests.adapters import HTTPAdapter

from arroyo_core.errors import DataError
from arroyo_iceberg.limits import ANSWER_BYTES
from arroyo_iceberg.reading import check_place

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import TableResponse
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from requests import PreparedRequest, Response, Session

_FILE_IO: Final = "py-io-impl"
_LOCATIONS: Final = "write.py-location-provider.impl"
#: What a REST catalog would change about how one speaks to it, and which code that is.
_OF_PIPELINE: Final[tuple[str, ...]] = (
    _FILE_IO,
    _LOCATIONS,
    "auth",
    "ssl",
    "credential",
    "token",
    "scope",
    "audience",
    "resource",
    "oauth2-server-uri",
    "rest.sigv4-enabled",
    "py-catalog-impl",
)


#: To connect, and between two pieces of an answer.
_PATIENCE_S: Final = (10.0, 300.0)
_PIECE_BYTES: Final = 2**20


class GuardedSqlCatalog(SqlCatalog):
    """A table's own properties open no files."""

    def _load_file_io(self, properties: dict[str, str] | None = None, location: str | None = None) -> FileIO:
        return load_file_io(self.properties, location)

    def load_table(self, identifier: Any) -> Table:
        """Raises `DataError` for a table that names code."""
        return _checked(super().load_table(identifier), self.properties)


class GuardedRestCatalog(RestCatalog):
    """The catalog says where files are and with which credentials, and nothing about code and logins."""

    def __init__(self, name: str, **properties: Any) -> None:
        self._given = dict(properties)
        super().__init__(name, **properties)

    def load_table(self, identifier: Any) -> Table:
        """Raises `DataError` for a table that names code."""
        return _checked(super().load_table(identifier), self._given)

    def _config_headers(self, session: Session) -> None:
        """Called with each new session, before it is used: to log in is the first use."""
        super()._config_headers(session)
        adapter = _LimitedAdapter([self.uri, self._given.get("oauth2-server-uri", self.uri)])
        for scheme in ("http://", "https://"):
            session.mount(scheme, adapter)

    def _fetch_config(self) -> None:
        super()._fetch_config()
        for name in _OF_PIPELINE:
            self.properties.pop(name, None)
            if name in self._given:
                self.properties[name] = self._given[name]

    def _load_file_io(self, properties: dict[str, str] | None = None, location: str | None = None) -> FileIO:
        own = {name: self._given[name] for name in _OF_PIPELINE if name in self._given}
        rest = {name: value for name, value in (properties or {}).items() if name not in _OF_PIPELINE}
        return super()._load_file_io({**rest, **own}, location)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        found = super()._response_to_table(identifier_tuple, table_response)
        # That of the library mixes in the properties of the table, which whoever writes to it sets.
        credentials = self._resolve_storage_credentials(
            table_response.storage_credentials, table_response.metadata_location
        )
        found.io = self._load_file_io({**table_response.config, **credentials}, table_response.metadata_location)
        return found


class _LimitedAdapter(HTTPAdapter):
    """Asks the hosts of these URLs only, and takes answers that are not too large, unpacked."""

    #: What is pickled with a session; requests declares it as of an instance.
    __attrs__ = [*HTTPAdapter.__attrs__, "_hosts"]  # noqa: RUF012

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        self._hosts = {urlsplit(url).hostname for url in urls}

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Raises `DataError` for a redirect to another host, and for an answer that is too large."""
        host = urlsplit(request.url or "").hostname
        if host not in self._hosts:
            # With what was to log in.
            raise DataError(f"the catalog sends to the host {host!r:.200}, which is not followed")
        response = super().send(request, *args, **{**kwargs, "timeout": kwargs.get("timeout") or _PATIENCE_S})
        pieces: list[bytes] = []
        size = 0
        for piece in response.iter_content(_PIECE_BYTES):
            size += len(piece)
            problem = ANSWER_BYTES.problem(size)
            if problem is not None:
                response.close()
                raise DataError(f"the catalog answers with too much: {problem}")
            pieces.append(piece)
        response._content = b"".join(pieces)
        return response


def _checked(table: Table, given: Any) -> Table:
    """The library runs that code when it commits, and writes where the table says."""
    properties = table.metadata.properties
    for place in (table.metadata.location, properties.get("write.data.path"), properties.get("write.metadata.path")):
        # The catalog has said where the metadata are, and whoever writes these the rest.
        if place:
            check_place(place, table.metadata_location)
    named = properties.get(_LOCATIONS)
    if named is not None and named != given.get(_LOCATIONS):
        name = ".".join(table.name())
        raise DataError(
            f"table {name} has the property {_LOCATIONS}, which names code, {named!r:.200}: it is run only if "
            f"catalog.properties has the same; remove it from the table, or write it there"
        )
    return table
