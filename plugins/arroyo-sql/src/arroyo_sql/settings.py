"""What `SET name = value` may name: keys of the pipeline, its parameters, former names, and hints for the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, YamlValue
from arroyo_core.pipeline.file_keys import CHECKPOINT, PIPELINE, Duration
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_sql.places import mapping, scalar, sequence
from arroyo_sql.script import OptionValue, Setting
from arroyo_sql.values import parse_interval_us

_KeyT = TypeVar("_KeyT")

#: The planner reads these; a later one counts for the statements behind it.
HINTS = ("updating_ttl",)
_PIPELINE = ("name", "parallelism", "execution")
_CHECKPOINT = tuple(f"checkpoint.{name}" for name in CHECKPOINT.names)
_PARAMETER_KEYS = ("type", "default", "description")
_PARAMETERS, _WAS, _UDFS = "parameters", "was", "udfs"
KNOWN = (*_PIPELINE, *_CHECKPOINT, *HINTS, "parameters.NAME", "was.NAME", _UDFS)
#: What Flink and Arroyo call them.
ALIASES: Mapping[str, str] = {
    "pipeline.name": "name",
    "parallelism.default": "parallelism",
    "default_parallelism": "parallelism",
    "execution.checkpointing.interval": "checkpoint.interval",
    "checkpoint_interval": "checkpoint.interval",
    "execution.checkpointing.dir": "checkpoint.url",
    "state.checkpoints.dir": "checkpoint.url",
    "table.exec.state.ttl": "updating_ttl",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a script by their names, those of parameters and of former names apart."""

    pipeline: Mapping[str, Setting]
    parameters: Sequence[tuple[str, str, Setting]]
    #: Former names by new ones: of views and sinks, or of nodes.
    former: Mapping[str, Setting]
    udfs: Setting | None

    @property
    def name(self) -> str | None:
        found = self.pipeline.get("name")
        return found.value if found is not None and isinstance(found.value, str) else None

    def entries(self, *, default_name: str, at: Location) -> list[Entry]:
        """The keys of the pipeline, in the order in which they are best written."""
        found: list[Entry] = []
        for key in PIPELINE.names:
            if key == "name" and "name" not in self.pipeline:
                found.append(Entry(key="name", key_at=at, value=scalar(at, default_name)))
            elif key in self.pipeline:
                found.append(_entry(key, self.pipeline[key]))
            elif key == _PARAMETERS and (declared := self.declared()) is not None:
                found.append(declared)
            elif key == "checkpoint":
                found += self._checkpoint()
        return found

    def _checkpoint(self) -> list[Entry]:
        own = [
            _entry(name.partition(".")[2], setting, is_duration=_is_duration(name.partition(".")[2]))
            for name, setting in self.pipeline.items()
            if name in _CHECKPOINT
        ]
        return [Entry(key="checkpoint", key_at=own[0].key_at, value=mapping(own[0].key_at, own))] if own else []

    def declared(self) -> Entry | None:
        """`parameters`; None where there are none."""
        if not self.parameters:
            return None
        by_name: dict[str, list[Entry]] = {}
        for name, key, setting in self.parameters:
            by_name.setdefault(name, []).append(_entry(key, setting))
        places = {name: setting.name_at for name, _, setting in reversed(self.parameters)}
        entries = [
            Entry(key=name, key_at=places[name], value=mapping(places[name], fields))
            for name, fields in by_name.items()
        ]
        return Entry(key=_PARAMETERS, key_at=entries[0].key_at, value=mapping(entries[0].key_at, entries))


def read_settings(settings: Sequence[Setting], mistakes: Mistakes) -> Settings:
    """The settings by what they are about; a name that is none is recorded."""
    pipeline: dict[str, Setting] = {}
    former: dict[str, Setting] = {}
    parameters: dict[tuple[str, str], Setting] = {}
    udfs: Setting | None = None
    for setting in settings:
        name = ALIASES.get(setting.name, setting.name)
        first, _, rest = name.partition(".")
        if name in (*_PIPELINE, *_CHECKPOINT):
            _add_once(pipeline, name, setting, mistakes)
        elif first == _PARAMETERS and rest:
            parameter, _, key = rest.partition(".")
            _add_once(parameters, (parameter, key or "default"), setting, mistakes)
        elif first == _WAS and rest:
            _add_once(former, rest, setting, mistakes)
        elif name == _UDFS:
            udfs = setting
        elif name not in HINTS:
            mistakes.add(
                f"there is no setting {setting.name!r}",
                at=setting.name_at,
                value=setting.name,
                allowed=KNOWN,
                suggestion=nearest(setting.name, [*KNOWN, *ALIASES]),
            )
    declared = [(name, key, setting) for (name, key), setting in parameters.items()]
    return Settings(pipeline, declared, former, udfs)


def hint_name(setting: Setting) -> str | None:
    """Which of the planner's hints a setting is; None for another."""
    name = ALIASES.get(setting.name, setting.name)
    return name if name in HINTS else None


def _add_once(found: dict[_KeyT, Setting], key: _KeyT, setting: Setting, mistakes: Mistakes) -> None:
    first = found.setdefault(key, setting)
    if first is not setting:
        place = f"line {first.name_at.line}, column {first.name_at.column}"
        message = f"{setting.name!r} is set twice: first in {place}"
        mistakes.add(message, at=setting.name_at, value=setting.name)


def _is_duration(key: str) -> bool:
    return isinstance(CHECKPOINT.key(key).form, Duration)


def _entry(key: str, setting: Setting, *, is_duration: bool = False) -> Entry:
    value = setting.value
    if is_duration and isinstance(value, str) and (duration_us := parse_interval_us(value)) is not None:
        value = format_duration_us(duration_us)
    return Entry(key=key, key_at=setting.name_at, value=_value(value, setting))


def _value(value: OptionValue, setting: Setting) -> YamlValue:
    if isinstance(value, list):
        return sequence(setting.at, [_value(item, setting) for item in value])
    return scalar(setting.at, value, setting.written if setting.is_secret else None)
