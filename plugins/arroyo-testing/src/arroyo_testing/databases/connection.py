"""How a database is reached, and what its errors mean: what every connector of a database promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar

import pytest

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError, RefusedError
from arroyo_testing.databases.server import DatabaseServer


class ConnectionSuite(ABC):
    """For a class of tests that has the fixtures `server` and `own_server`."""

    #: Changes of a config that make it wrong, and the field to look at: what is the database's own.
    mistakes: ClassVar[Sequence[tuple[Mapping[str, Any], str]]]
    #: How the error of a table that is not there is shown.
    unknown_table: ClassVar[str]
    #: Statements of which the last one has a value that does not fit.
    misfit: ClassVar[Sequence[str]]

    @abstractmethod
    def read(self, **config: Any) -> Any:
        """The server of a config: it has `connect` and `translating`."""

    @abstractmethod
    def number(self, connection: Any) -> int:
        """The session of a connection, as the server calls it."""

    @abstractmethod
    def end_session(self, server: DatabaseServer, number: int) -> None:
        """Return when it is told to go."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "changes" in metafunc.fixturenames:
            shared = [
                ({"password": "wrong one"}, "connection.password"),
                ({"user": "nobody"}, "connection.password"),  # servers do not say that there is none
                ({"database": "none"}, "connection.database"),
                ({"sslmode": "require"}, "connection.sslmode"),
            ]
            metafunc.parametrize(("changes", "field"), [*shared, *self.mistakes])

    def test_what_no_retry_helps_is_a_mistake_with_its_field(
        self, server: DatabaseServer, changes: Mapping[str, Any], field: str
    ) -> None:
        error = _refusal(lambda: self.read(**{**server.config, **changes}).connect())
        assert isinstance(error, ConfigError), error
        assert error.field == field
        assert "wrong one" not in str(error)

    def test_a_server_that_is_away_is_an_outage(self, own_server: DatabaseServer) -> None:
        own_server.stop()
        assert isinstance(_refusal(self.read(**own_server.config).connect), ExternalError)

    def test_a_session_that_the_server_ends_is_an_outage(self, server: DatabaseServer) -> None:
        database = self.read(**server.config)
        connection = database.connect()
        self.end_session(server, self.number(connection))
        for _ in range(2):
            with pytest.raises(ExternalError, match="cannot ask"), database.translating("cannot ask"):
                connection.execute("select 1")
            connection.close()

    def test_statements_that_are_wrong_and_rows_that_do_not_fit_are_no_outages(self, server: DatabaseServer) -> None:
        database = self.read(**server.config)
        with closing(database.connect()) as connection:
            unknown = pytest.raises(ConfigError, match=self.unknown_table)
            with unknown as caught, database.translating("cannot read"):
                connection.execute("select * from no_such_table")
            assert caught.value.field == "table"
            for statement in self.misfit[:-1]:
                connection.execute(statement)
            with pytest.raises(DataError), database.translating("cannot write"):
                connection.execute(self.misfit[-1])

    def test_checked_certificates_need_authorities(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.read(host="db", database="shop", user="me", sslmode="verify_full")
        assert caught.value.field == "connection.sslrootcert"

    def test_planning_for_those_who_are_not_trusted_reaches_no_server(self, server: DatabaseServer) -> None:
        with in_force(PlanningPolicy(is_untrusted=True)), pytest.raises(RefusedError):
            self.read(**server.config).connect()

    def test_a_server_that_was_killed_comes_back_with_what_was_committed(self, own_server: DatabaseServer) -> None:
        own_server.execute("create table kept (id int)", "insert into kept values (1)")
        own_server.restart()
        assert own_server.execute("select id from kept") == [(1,)]


def _refusal(connect: Callable[[], Any]) -> ArroyoError:
    with pytest.raises(ArroyoError) as caught:
        connect()
    return caught.value
