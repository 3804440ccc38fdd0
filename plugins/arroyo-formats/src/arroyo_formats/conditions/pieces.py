"""Which pieces of a file, such as the row groups of Parquet, a reader may leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from arroyo_formats.conditions.bounds import Bounds
from arroyo_formats.conditions.condition import Condition, Lookup, columns_of, may_hold


@dataclass(frozen=True, slots=True)
class Pieces:
    """Of one file. `fixed` are the columns that do not come out of it, such as values of its folders."""

    condition: Condition
    fixed: Mapping[str, Bounds]
    #: The types that rows will have; a column that is not among them has that of the file.
    types: Mapping[str, pa.DataType]
    on_left_out: Callable[[], None]

    @property
    def columns(self) -> list[str]:
        """Those of the file that the condition reads."""
        return [name for name in columns_of(self.condition) if name not in self.fixed]

    def are_wanted(self, bounds: Lookup) -> bool:
        """Whether a piece with these bounds may have a row for which the condition is true."""
        return may_hold(self.condition, lambda name: self.fixed[name] if name in self.fixed else bounds(name))
