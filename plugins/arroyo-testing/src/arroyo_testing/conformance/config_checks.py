"""Checks that a mistake in a config is the user's: a `ConfigError` that names the field, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ArroyoError, ConfigError, Domain, InvalidPipelineError
from arroyo_core.pipeline.resolution import encode_config
from arroyo_testing.conformance.configs import read_message
from arroyo_testing.conformance.faults import ConformanceError, shown
from arroyo_testing.conformance.subject import OperatorSubject, SourceSubject, Subject

#: Values that no field is likely to want; each is put into each place.
_ODD_VALUES: tuple[Any, ...] = ("no such thing", "", -1, 0, 2**40, True, [], ["no such thing"], {"no": "such"}, None)
#: To a constructor these are the same as nothing.
_NOTHING: tuple[Any, ...] = ("", 0, [], None)
_MAX_DEPTH = 4
_UNKNOWN = "no_such_field_of_this_config"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A config that is changed in one place."""

    path: str
    what: str
    config: Mapping[str, Any]
    #: Whether a field is missing: then the error may be about the config as a whole (`give one of a, b or c`).
    is_missing: bool = False


def check_config_mistakes(subject: OperatorSubject | SourceSubject) -> None:
    """A field that is unknown, missing, of a wrong type or without sense: accepted, or refused with its name."""
    subject.make()
    schemas = subject.schemas if isinstance(subject, OperatorSubject) else []
    for mistake in mistakes(subject.config):
        _check_mistake(subject, mistake, schemas)


def check_leaves_its_config(subject: OperatorSubject | SourceSubject) -> None:
    """`resolve` returns a copy, and `with_config` only reads: the plan carries what `resolve` returned."""
    constructor = subject.constructor
    message = read_message(subject.case.operator, subject.config, constructor.config_type)
    written = encode_config(message)
    resolved = constructor.resolve(message)
    if encode_config(message) != written:
        raise ConformanceError(
            f"{subject.name}: resolve() changes the config that it is given: make a copy of it, change and return that"
        )
    planned = encode_config(resolved)
    constructor.with_config(resolved, subject.registry)
    if encode_config(resolved) != planned:
        raise ConformanceError(
            f"{subject.name}: with_config() changes its config, which executors will not see: "
            "return a changed copy from resolve(config), which is called once on the driver"
        )


def check_wrong_inputs(subject: OperatorSubject) -> None:
    """An input without a column, or with one of another type: accepted, or refused with a `ConfigError`."""
    for index, schema in enumerate(subject.schemas):
        for what, other in _other_schemas(schema):
            inputs = [*subject.schemas[:index], other, *subject.schemas[index + 1 :]]
            try:
                subject.operator().output_schema(inputs)
            except ArroyoError as error:
                if error.domain is not Domain.INTERNAL:
                    continue
                _blame_inputs(subject, index, what, error)
            except Exception as error:
                _blame_inputs(subject, index, what, error)


def mistakes(config: Mapping[str, Any]) -> Iterator[Mistake]:
    """The config with one thing wrong, for everything in it."""
    yield Mistake(_UNKNOWN, "with an unknown field", {**config, _UNKNOWN: 1})
    for path, steps in _places(config):
        yield Mistake(path, f"without {path!r}", _without(config, steps), is_missing=True)
        for value in _ODD_VALUES:
            what = f"with {path}: {shown(value)}"
            yield Mistake(path, what, _with(config, steps, value), is_missing=value in _NOTHING)


def _check_mistake(subject: Subject, mistake: Mistake, schemas: list[ArroyoSchema]) -> None:
    try:
        message = read_message(subject.case.operator, mistake.config, subject.constructor.config_type)
    except InvalidPipelineError:
        return
    except Exception as error:
        _blame(subject, mistake, error, "reading the config")
        return
    try:
        doing = "resolve()"
        resolved = subject.constructor.resolve(message)
        doing = "with_config()"
        made = subject.constructor.with_config(resolved, subject.registry)
        doing = "output_schema()"
        made.inner.output_schema(schemas)
        if made.operator is not None:
            doing = "side_outputs()"
            made.operator.side_outputs(schemas)
    except ConfigError as error:
        _check_field(subject, mistake, error, doing)
    except ArroyoError as error:
        # A service that is away, a plugin that is missing: not the config's field, and said clearly.
        if error.domain is Domain.INTERNAL:
            _blame(subject, mistake, error, doing)
    except Exception as error:
        _blame(subject, mistake, error, doing)


def _check_field(subject: Subject, mistake: Mistake, error: ConfigError, doing: str) -> None:
    if error.field is None:
        if mistake.is_missing:
            return
        raise ConformanceError(
            f"{subject.name}: {doing} refuses the config {mistake.what} by a ConfigError without a field ({error}): "
            f"raise ConfigError(..., field={mistake.path!r}), so that the user sees the line"
        )
    known = _fields(cast(Descriptor, subject.constructor.config_type.DESCRIPTOR))
    first = error.field.partition(".")[0].partition("[")[0]
    if known is not None and first not in known:
        raise ConformanceError(
            f"{subject.name}: {doing} refuses the config {mistake.what} by a ConfigError with the field "
            f"{error.field!r}, which the config does not have: it has {', '.join(sorted(known))}"
        )


def _blame(subject: Subject, mistake: Mistake, error: Exception, doing: str) -> None:
    raise ConformanceError(
        f"{subject.name}: {doing} raises {type(error).__name__} ({shown(str(error))}) for a config "
        f"{mistake.what}, which is a mistake of the user: raise ConfigError(..., field={mistake.path!r}), "
        "so that the user sees the line"
    ) from error


def _blame_inputs(subject: Subject, index: int, what: str, error: Exception) -> None:
    raise ConformanceError(
        f"{subject.name}: output_schema() raises {type(error).__name__} ({shown(str(error))}) for input {index} "
        f"{what}, which is a mistake of the user: raise ConfigError(..., field=...), naming the field that asks for it"
    ) from error


def _other_schemas(stream: ArroyoSchema) -> Iterator[tuple[str, ArroyoSchema]]:
    names = stream.names
    for place, name in enumerate(names):
        if len(names) > 1:
            yield f"without the column {name!r}", stream.with_schema(stream.schema.remove(place))
        for kind in (pa.string(), pa.list_(pa.struct([("x", pa.int8())])), pa.decimal128(5, 2), pa.null()):
            changed = stream.schema.set(place, pa.field(name, kind))
            timed = None if name == stream.timestamp_column else stream.timestamp_column
            yield f"with {name!r} as {kind}", ArroyoSchema(changed, timed, stream.key_columns)
    if stream.timestamp_column is not None:
        yield "without an event time", ArroyoSchema(stream.schema, None, stream.key_columns)


def _fields(descriptor: Descriptor) -> set[str] | None:
    """The names of the config's fields; None where it may have any."""
    if descriptor.full_name.startswith("google.protobuf."):
        return None
    return {name for field in descriptor.fields for name in (field.name, field.json_name)}


def _places(value: Any, path: str = "", steps: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every place inside a config, as a person writes it and as keys."""
    if steps:
        yield path, steps
    if len(steps) >= _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, f"{path}.{key}" if path else str(key), (*steps, key))
    elif isinstance(value, list | tuple) and value:
        # The others are like the first.
        yield from _places(value[0], f"{path}[0]", (*steps, 0))


def _with(value: Any, steps: tuple[Any, ...], new: Any) -> Any:
    if not steps:
        return new
    first, *rest = steps
    if isinstance(value, Mapping):
        return {key: _with(inner, tuple(rest), new) if key == first else inner for key, inner in value.items()}
    return [_with(inner, tuple(rest), new) if place == first else inner for place, inner in enumerate(value)]


def _without(value: Any, steps: tuple[Any, ...]) -> Any:
    first, *rest = steps
    if rest:
        return _with(value, (first,), _without(value[first], tuple(rest)))
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if key != first}
    return [inner for place, inner in enumerate(value) if place != first]
