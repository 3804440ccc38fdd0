"""What `${NAME}` stands for in a pipeline file: a parameter of the pipeline, else a variable of the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from arroyo_core.pipeline.document import GivenSpan, Scalar
from arroyo_core.pipeline.environment import REFERENCE, Environment
from arroyo_core.pipeline.mistakes import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A text with its references replaced; `written` keeps those to the environment as they are."""

    text: str = field(repr=False)
    written: str
    is_substituted: bool = False
    is_parameter: bool = False
    #: Whether it is a number or a boolean, for a text that is a parameter and nothing else.
    is_plain: bool | None = None
    #: It needs a parameter for which a mistake is recorded already, or which may be declared where nobody can read it.
    is_missing: bool = False
    #: Where values are in `text` that were given for parameters.
    given: tuple[GivenSpan, ...] = ()


@dataclass(slots=True)
class References:
    """Replaces references, and remembers which parameters were used.

    A value of None is that of a parameter for which a mistake is recorded.
    """

    environment: Environment
    parameters: Mapping[str, Scalar | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    #: False where the declarations cannot be read: a name without a value may be a parameter then, and is no mistake.
    knows_all_parameters: bool = True

    def resolve(self, text: str, report: Callable[[str, str, str | None], None]) -> Resolved:
        """`report(message, reference, suggestion)` is called for each reference that cannot be replaced."""
        names = [name for name in reference_names(text) if name in self.parameters]
        self.used.update(names)
        found = {name: value for name in names if (value := self.parameters[name]) is not None}
        if text == f"${{{names[0] if names else ''}}}" and found:
            return _whole(found[names[0]])

        is_untold = False

        def add(message: str, reference: str) -> None:
            nonlocal is_untold
            name = next(iter(reference_names(reference)), None)
            near = nearest(name, self.parameters) if name else None
            if name is not None and not self.knows_all_parameters:
                is_untold = True
            elif name not in self.parameters:
                report(message, reference, f"${{{near}}}" if near else None)

        spans: list[GivenSpan] = []

        def place(name: str, start: int, stop: int) -> None:
            if found[name].is_given:
                spans.append(GivenSpan(name=name, start=start, stop=stop, is_plain=found[name].is_plain))

        values = {name: value.text for name, value in found.items()}
        replaced = self.environment.substitute(text, add, parameters=values, placed=place)
        return Resolved(
            text=replaced,
            written=_written(text, found) if found else text,
            is_substituted=_is_substituted(text, found),
            is_parameter=bool(found),
            is_plain=False if found else None,
            is_missing=is_untold or len(found) < len(set(names)),
            given=tuple(spans),
        )


def reference_names(text: str) -> list[str]:
    """The names that a text refers to, in order."""
    return [match["name"] for match in REFERENCE.finditer(text) if match["name"] is not None]


def _is_substituted(text: str, found: Mapping[str, Scalar]) -> bool:
    if not found:
        return "${" in text
    has_others = any(name not in found for name in reference_names(text))
    return has_others or any(value.is_substituted for value in found.values())


def _whole(value: Scalar) -> Resolved:
    return Resolved(
        text=value.text,
        written=value.written,
        is_substituted=value.is_substituted,
        is_parameter=True,
        is_plain=value.is_plain,
    )


def _written(text: str, found: Mapping[str, Scalar]) -> str:
    def replacement(match: re.Match[str]) -> str:
        value = found.get(match["name"])
        if value is None:
            return match.group()
        default = match["default"]
        return str(default[2:]) if default is not None and not value.text else value.written

    return REFERENCE.sub(replacement, text)
