"""The setting `format` of a config, with those settings of formats that may also stand beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from arroyo_formats import FileFormat, FormatChoice, read_choice
from google.protobuf import struct_pb2
from google.protobuf.message import Message

from arroyo_core.errors import ConfigError

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Beside:
    """A setting of the format that is written as a field of the config itself: where, what, and why it may not be."""

    place: str
    value: Any
    refusal: str


@dataclass(frozen=True, slots=True)
class ChosenFormat:
    """A format with its settings, and how such files are treated."""

    choice: FormatChoice
    #: Where settings are written that are not written in `format`.
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.choice.name

    @property
    def is_updating(self) -> bool:
        return self.choice.format.is_updating

    @property
    def settings(self) -> Message:
        return self.choice.settings

    @property
    def files(self) -> FileFormat:
        return self.choice.files()

    def placed(self, call: Callable[[], ResultT]) -> ResultT:
        """What the call returns; a `ConfigError` about a setting says where that is written."""
        try:
            return call()
        except ConfigError as error:
            path = error.field or ""
            for name, place in self.places.items():
                inside = f"format.{name}"
                if path == inside or path.startswith((f"{inside}.", f"{inside}[")):
                    raise _at(error, place + path.removeprefix(inside)) from error
            raise

    def resolve(self) -> ChosenFormat:
        """The format as executors are sent it; raises `ConfigError`."""
        return replace(self, choice=self.placed(self.choice.resolve))


def choose_format(value: struct_pb2.Value, *, default: str | None = None, beside: Mapping[str, Beside]) -> ChosenFormat:
    """The format of a config; `beside` are settings by their names in the format. Raises `ConfigError`."""
    choice = read_choice(value, default=default)
    # That it has files is said first: a setting that does not fit it is of no interest then.
    choice.files()
    settings = type(choice.settings)()
    settings.CopyFrom(choice.settings)
    written = value.struct_value.fields if value.HasField("struct_value") else {}
    for name, setting in beside.items():
        if name not in settings.DESCRIPTOR.fields_by_name:
            raise ConfigError(setting.refusal.format(format=choice.name), field=setting.place, value=str(setting.value))
        if name in written:
            raise ConfigError(f"{name} is given twice: also in format", field=setting.place, value=str(setting.value))
        _set(settings, name, setting.value)
    places = {name: setting.place for name, setting in beside.items()}
    return ChosenFormat(replace(choice, settings=settings), places)


def _set(settings: Message, name: str, value: Any) -> None:
    if settings.DESCRIPTOR.fields_by_name[name].is_repeated:
        getattr(settings, name)[:] = value
    else:
        setattr(settings, name, value)


def _at(error: ConfigError, place: str) -> ConfigError:
    return ConfigError(
        error.message, field=place, value=error.value, allowed=error.allowed, suggestion=error.suggestion
    )
