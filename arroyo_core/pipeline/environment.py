"""`${NAME}` in pipeline files: substitution, and keeping the values out of everything shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from arroyo_core.api.policy import PlanningPolicy, current_policy
from arroyo_core.pipeline.redaction import Redaction

REFERENCE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|\$\{")


@dataclass(slots=True)
class Environment:
    """Reads variables, and remembers which values it gave out so that `redact` can hide them."""

    variables: Mapping[str, str] = field(repr=False)
    redaction: Redaction = field(default_factory=Redaction, repr=False)
    policy: PlanningPolicy = field(default_factory=current_policy, repr=False)

    def substitute(
        self,
        text: str,
        report: Callable[[str, str], None],
        *,
        parameters: Mapping[str, str] = MappingProxyType({}),
        placed: Callable[[str, int, int], None] = lambda name, start, stop: None,
    ) -> str:
        """Replace `${NAME}` and `${NAME:-default}`, and `$$` by a dollar sign.

        `report(message, reference)` is called for each reference that cannot be replaced. As in a
        shell, the default also stands for a variable that is set to nothing. A name of `parameters` has
        its value there, which is not a secret; `placed(name, start, stop)` is told where in the result that is.
        A variable that the policy refuses counts as not set.
        """
        #: How much longer the result is than the text up to here.
        longer = 0

        def replacement(match: re.Match[str]) -> str:
            nonlocal longer
            value = value_of(match)
            start = match.start() + longer
            longer += len(value) - len(match.group())
            if match["name"] in parameters and parameters[match["name"]]:
                placed(match["name"], start, start + len(value))
            return value

        def value_of(match: re.Match[str]) -> str:
            reference, name, default = match.group(), match["name"], match["default"]
            if reference == "$$":
                return "$"
            if name is None:
                report("'${' begins no variable: write ${NAME} or ${NAME:-default}, or $$ for a dollar sign", reference)
                return reference
            is_readable = name in parameters or self.policy.is_readable_variable(name)
            value = parameters[name] if name in parameters else self.variables.get(name) if is_readable else None
            if default is not None and not value:
                return str(default[2:])
            if not is_readable:
                report(f"untrusted mode refuses to read the variable {name}: --allow-env {name} allows it", reference)
                return reference
            if value is None:
                report(f"environment variable {name} is not set; set it, or write ${{{name}:-default}}", reference)
                return reference
            if name not in parameters:
                self.redaction.hide(value, f"${{{name}}}")
            return value

        return REFERENCE.sub(replacement, text)

    def redact(self, text: str) -> str:
        """`text` with every value that was read from the environment, and every word of one, as `${NAME}`.

        Values of secret fields are hidden as well.
        """
        return self.redaction.redact(text)
