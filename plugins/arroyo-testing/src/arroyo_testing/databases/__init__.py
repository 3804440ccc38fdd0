"""What every connector of a database promises, as classes of tests: a plugin runs them against its own server.

A subclass says what is its database's, and the folder's `conftest.py` has the fixtures that each class names.
"""

from arroyo_testing.databases.cdc import CdcSuite
from arroyo_testing.databases.cdc_faults import CdcFaultSuite
from arroyo_testing.databases.cdc_kills import CdcKillSuite
from arroyo_testing.databases.cdc_table import (
    CdcTable,
    MakeTable,
    Plan,
    catch_up,
    check_refused,
    go_on,
    refused,
    run_until_it_fails,
)
from arroyo_testing.databases.cdc_times import CdcTimeSuite
from arroyo_testing.databases.connection import ConnectionSuite
from arroyo_testing.databases.growing import GrowingSuite, GrowingTable, words
from arroyo_testing.databases.growing_kills import GrowingKillSuite
from arroyo_testing.databases.hostile import HostileSinkSuite
from arroyo_testing.databases.lookup import LookupDatabase, LookupSuite, find
from arroyo_testing.databases.materialized import Materialized, kinds, sort
from arroyo_testing.databases.server import DatabaseServer
from arroyo_testing.databases.sink import STREAM, UPSERT, Faults, SinkDatabase, SinkSuite, rows
from arroyo_testing.databases.sink_crashes import SinkCrashSuite

__all__ = [
    "STREAM",
    "UPSERT",
    "CdcFaultSuite",
    "CdcKillSuite",
    "CdcSuite",
    "CdcTable",
    "CdcTimeSuite",
    "ConnectionSuite",
    "DatabaseServer",
    "Faults",
    "GrowingKillSuite",
    "GrowingSuite",
    "GrowingTable",
    "HostileSinkSuite",
    "LookupDatabase",
    "LookupSuite",
    "MakeTable",
    "Materialized",
    "Plan",
    "SinkCrashSuite",
    "SinkDatabase",
    "SinkSuite",
    "catch_up",
    "check_refused",
    "find",
    "go_on",
    "kinds",
    "refused",
    "rows",
    "run_until_it_fails",
    "sort",
    "words",
]
