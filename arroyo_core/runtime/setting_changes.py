"""Settings that an operator's state depends on, beside those a checkpoint was written with; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arroyo_core.pipeline.plan import Setting
from arroyo_core.proto.state_pb2 import RecordedSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A setting that was another one; both are as people read them."""

    label: str
    before: str
    after: str

    def __str__(self) -> str:
        # What came from the environment is shown by its name only.
        hint = " (another value)" if self.before == self.after else ""
        return f"{self.label} {self.before} -> {self.after}{hint}"


def record_settings(settings: Mapping[str, Setting]) -> dict[str, RecordedSetting]:
    """What a checkpoint keeps of them."""
    return {
        label: RecordedSetting(
            text=each.text,
            digest=each.digest,
            parts=record_settings(each.parts or {}),
            has_parts=each.parts is not None,
        )
        for label, each in settings.items()
    }


def compare_settings(
    recorded: Mapping[str, RecordedSetting], settings: Mapping[str, Setting]
) -> tuple[SettingChange, ...]:
    """Those that changed, in the operator's order.

    A label that only one side has is not compared: it came or went with a version of the operator. Nor is a part that
    only one side has; a checkpoint from before parts were recorded is compared as a whole.
    """
    changes: list[SettingChange] = []
    for label, setting in settings.items():
        if label not in recorded:
            continue
        before = recorded[label]
        if setting.parts is not None and before.has_parts:
            parts = compare_settings(before.parts, setting.parts)
            changes += [SettingChange(label=label, before=part.before, after=part.after) for part in parts]
        elif before.digest != setting.digest:
            changes.append(SettingChange(label=label, before=before.text, after=setting.text))
    return tuple(changes)


def describe_changes(changes: tuple[SettingChange, ...]) -> str:
    """In words: `size 1h -> 2h; offset 0s -> 3s`."""
    return "; ".join(map(str, changes))
