"""Functions that join those of SQL, users' and those over JSON: typed as they are declared, failing with own errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionConfig, SessionContext, udf

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError, DataError, PluginError, UdfError
from arroyo_core.udf import AggregateUdf, AsyncUdf, BatchUdf, ScalarUdf, UserFunction, Volatility
from arroyo_std.columns import nearest, normal_type
from arroyo_std.json_functions import JSON_FUNCTIONS, JsonFunction, check_path

_USES: Mapping[type[UserFunction], str] = {
    AggregateUdf: "an aggregate: use it in 'aggregates' of a window or of std.updating_aggregate",
    AsyncUdf: "asynchronous: call it with std.async_udf",
    BatchUdf: "a function of whole batches: call it with std.map_batches",
}
_LEAVES = {"Column", "Literal"}


class UserFunctions:
    """The scalar UDFs of one SQL session, and what one of them raised: DataFusion keeps only its text."""

    def __init__(self, registry: Registry) -> None:
        self._others = {each.name: each for each in registry.udfs.values() if not isinstance(each, ScalarUdf)}
        self._disputed = registry.disputed_udfs
        self._by_name: dict[str, ScalarUdf] = {}
        for each in registry.udfs.values():
            if isinstance(each, ScalarUdf):
                self._add(each)
        self._error: UdfError | None = None
        self._data_error: DataError | None = None
        #: While rows that fail are collected: how many rows there are, and the errors of those that failed.
        self._rows = 0
        self._failed: dict[int, UdfError] | None = None

    @property
    def signatures(self) -> Mapping[str, str]:
        """By the name that SQL has for the function."""
        functions: dict[str, ScalarUdf | JsonFunction] = {**JSON_FUNCTIONS, **self._by_name}
        return {name: each.signature for name, each in functions.items()}

    def register(self, context: SessionContext, texts: Iterable[str]) -> None:
        """Make those known that these texts of SQL may call: each costs 30 us, in every session."""
        words = _words(texts)
        for function in JSON_FUNCTIONS.values():
            if function.name in words:
                call = self._reported(function)
                context.register_udf(udf(call, function.types, function.return_type, "immutable", function.name))
        for name, each in self._by_name.items():
            if not _is_among(name, words):
                continue
            volatility = "volatile" if each.volatility is Volatility.VOLATILE else "immutable"
            types = [parameter.type for parameter in each.parameters]
            context.register_udf(udf(self._guarded(each), types, each.return_type, volatility, name))

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Around an execution: what a UDF raised takes the place of what DataFusion made of it."""
        self._error = self._data_error = None
        try:
            yield
        except Exception:
            found = self._error or self._data_error
            if found is None:
                raise
            raise found from found.__cause__

    @contextmanager
    def collecting(self, rows: int) -> Iterator[dict[int, UdfError]]:
        """Around an execution over so many rows: functions of single values give null for rows that fail.

        Yields the errors, by row. A call that sees other rows than the batch has (within a CASE) raises still.
        """
        self._rows, self._failed = rows, {}
        try:
            yield self._failed
        finally:
            self._failed = None

    def check_constants(self, *, sql: str, field: str) -> None:
        """Raise `ConfigError` if a UDF failed for constants, with which it was called while SQL was planned."""
        if self._error is not None:
            raise ConfigError(self._error.summary, field=field, value=sql) from self._error

    def check_calls(self, parsed: Expr, stream: DataFrame, *, sql: str, field: str) -> None:
        """Raise `ConfigError` for the first call of a UDF in an expression whose arguments do not fit.

        DataFusion would make texts of anything, and anything of texts.
        """
        for call in _calls(parsed, {*self._by_name, *JSON_FUNCTIONS}):
            if call.name in JSON_FUNCTIONS:
                _check_json_call(JSON_FUNCTIONS[call.name], call, stream, sql=sql, field=field)
                continue
            function = self._by_name[call.name]
            kinds = [_type_of(argument, stream) for argument in call.arguments]
            is_known = None not in kinds
            if not _are_accepted(kinds, function) or (is_known and _type_of(call.expression, stream) is None):
                shown = ", ".join("?" if kind is None else str(kind) for kind in kinds)
                raise ConfigError(wrong_call(function.signature, shown), field=field, value=sql)

    def direct_call(self, parsed: Expr, schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.Array] | None:
        """The expression as a call from Python, if it is one UDF over columns of the types that it takes."""
        if parsed.variant_name() != "ScalarFunction":
            return None
        function = self._by_name.get(parsed.rex_call_operator())
        operands = parsed.rex_call_operands() if function is not None else []
        if function is None or not operands or any(operand.variant_name() != "Column" for operand in operands):
            return None
        names = [str(operand.to_variant().name()) for operand in operands]
        if [schema.field(name).type for name in names] != [parameter.type for parameter in function.parameters]:
            return None
        guarded = self._guarded(function)
        return lambda batch: guarded(*(batch.column(name) for name in names))

    def is_called_in(self, sql: str) -> bool:
        """Whether the text may call a UDF, or a function over JSON; false only if it does not."""
        words = _words([sql])
        return not words.isdisjoint(JSON_FUNCTIONS) or any(_is_among(name, words) for name in self._by_name)

    def nearest(self, name: str, other: str | None) -> str | None:
        """The function most like `name`, for "did you mean": a UDF, or `other`, which SQL suggests."""
        return nearest(name, [*self._by_name, *JSON_FUNCTIONS, *([other] if other else [])])

    def explain_unknown(self, name: str) -> str | None:
        """Why a UDF of this name cannot be called in SQL; None if there is no such UDF."""
        if name in self._disputed:
            return self._disputed[name]
        found = self._others.get(name)
        use = next((use for kind, use in _USES.items() if isinstance(found, kind)), None)
        return None if use is None else f"function {name!r} is {use}"

    def _add(self, function: ScalarUdf) -> None:
        name = sql_name(function.name)
        taken = self._by_name.setdefault(name, function)
        if taken is function and not _is_builtin(name):
            return
        shown = f"{function.name!r} of {function.source}" if function.source else repr(function.name)
        if _is_builtin(name):
            raise PluginError(f"UDF {shown} has the name of a function of SQL: it needs another")
        raise PluginError(f"UDFs {taken.name!r} and {shown} differ in case alone, which SQL ignores")

    def _reported(self, function: JsonFunction) -> Callable[..., pa.Array]:
        def call(*columns: pa.Array) -> pa.Array:
            try:
                return function.evaluate(*columns)
            except DataError as error:
                self._data_error = error
                raise

        return call

    def _guarded(self, function: ScalarUdf) -> Callable[..., pa.Array]:
        def call(*columns: pa.Array) -> pa.Array:
            try:
                if self._failed is not None and len(columns[0]) == self._rows:
                    return function.evaluate(columns, failed=self._failed)
                return function.evaluate(columns)
            except UdfError as error:
                self._error = error
                raise

        return call


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    expression: Expr
    arguments: Sequence[Expr]


def _words(texts: Iterable[str]) -> Set[str]:
    return {word.lower() for text in texts for word in re.findall(r"\w+", text)}


def _is_among(name: str, words: Set[str]) -> bool:
    return name.rpartition(".")[2].lower() in words


def sql_name(name: str) -> str:
    """What a function is registered as: SQL makes small letters of a name, unless there is a dot in it."""
    return name if "." in name else name.lower()


def wrong_call(signature: str, arguments: str) -> str:
    """The message for a call with arguments of these types."""
    return f"{signature} cannot be called with ({arguments}): give what it takes, or CAST it"


def _calls(expression: Expr, names: Set[str]) -> Iterator[_Call]:
    """The calls of these functions, inner ones first: an outer one has no type while an inner one is wrong."""
    if expression.variant_name() in _LEAVES:
        return
    try:
        operands = expression.rex_call_operands()
    # DataFusion raises bare exceptions for kinds of expressions that it cannot take apart.
    except Exception:
        return
    for operand in operands:
        yield from _calls(operand, names)
    if expression.variant_name() == "ScalarFunction" and expression.rex_call_operator() in names:
        yield _Call(expression.rex_call_operator(), expression, operands)


def _type_of(expression: Expr, stream: DataFrame) -> pa.DataType | None:
    """None for what cannot be typed, by itself or over the columns of this stream."""
    try:
        return normal_type(stream.select(expression.alias("x")).schema().field(0).type)
    except Exception:
        return None


def _are_accepted(kinds: Sequence[pa.DataType | None], function: ScalarUdf) -> bool:
    if len(kinds) != len(function.parameters):
        return False
    wanted = [parameter.type for parameter in function.parameters]
    return all(
        given is None or pa.types.is_null(given) or _is_text(given) == _is_text(kind)
        for given, kind in zip(kinds, wanted, strict=True)
    )


def _check_json_call(function: JsonFunction, call: _Call, stream: DataFrame, *, sql: str, field: str) -> None:
    kinds = [_type_of(argument, stream) for argument in call.arguments]
    text, *places = [kind is None or pa.types.is_null(kind) or _is_text(kind) for kind in kinds] or [False]
    is_number = function.place == "key" and kinds[1:] and kinds[1] is not None and pa.types.is_integer(kinds[1])
    if len(kinds) != len(function.types) or not text or not (all(places) or is_number):
        shown = ", ".join("?" if kind is None else str(kind) for kind in kinds)
        raise ConfigError(wrong_call(function.signature, shown), field=field, value=sql)
    if function.place == "path" and call.arguments[1].variant_name() == "Literal":
        path = call.arguments[1].python_value()
        mistake = None if path is None else check_path(path.as_py() if isinstance(path, pa.Scalar) else path)
        if mistake is not None:
            raise ConfigError(mistake, field=field, value=sql)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@cache
def _is_builtin(name: str) -> bool:
    if name in JSON_FUNCTIONS:
        return True
    context = _plain_session()
    for find in (context.udf, context.udaf, context.udwf):
        try:
            find(name)
        # What DataFusion raises for a name that it does not have is not documented.
        except Exception:
            continue
        return True
    return False


@cache
def _plain_session() -> SessionContext:
    return SessionContext(SessionConfig())
