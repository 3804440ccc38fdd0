"""From `package.module:ClassName` in a config to an instance, with errors that say what is wrong."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError
from arroyo_std.columns import nearest
from arroyo_std.process_function import ProcessFunction

_FORM = "package.module:ClassName"


def make_function(path: str, arguments: Mapping[str, Any]) -> ProcessFunction:
    """Import a subclass of `ProcessFunction` and make it; raises `ConfigError` at `function` or `arguments`."""
    kind = _import_class(path)
    try:
        inspect.signature(kind).bind(**arguments)
    except TypeError as error:
        raise ConfigError(
            f"{path} does not take these arguments: {error}; it takes {inspect.signature(kind)}",
            field="arguments",
            value=dict(arguments),
        ) from error
    try:
        return kind(**arguments)
    except ConfigError as error:
        field = f"arguments.{error.field}" if error.field else "arguments"
        raise ConfigError(
            error.message, field=field, value=error.value, allowed=error.allowed, suggestion=error.suggestion
        ) from error
    except Exception as error:
        raise ConfigError(
            f"{path} cannot be made with these arguments: {type(error).__name__}: {error}",
            field="arguments",
            value=dict(arguments),
        ) from error


def all_arguments(function: ProcessFunction, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a function was made with, with the defaults of what was left out; a default that JSON has no form for is
    left out, as it has no form that lasts."""
    bound = inspect.signature(type(function)).bind(**arguments)
    bound.apply_defaults()
    return {name: each for name, each in bound.arguments.items() if name in arguments or _is_plain(each)}


def plain_arguments(value: Any) -> Any:
    """What a JSON object holds, with whole numbers as int: JSON knows one kind of number."""
    if isinstance(value, Mapping):
        return {name: plain_arguments(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain_arguments(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _import_class(path: str) -> type[ProcessFunction]:
    module_name, colon, class_name = path.partition(":")
    parts = module_name.split(".")
    if not colon or not class_name.isidentifier() or not all(part.isidentifier() for part in parts):
        raise ConfigError(f"{path!r} does not name a class: write {_FORM}", field="function", value=path)
    current_policy().check_code(f"to import {path}", field="function")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        is_itself = error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}."))
        reason = (
            f"there is no module {error.name!r}: it must be installed here and on every executor"
            if is_itself
            else f"module {module_name!r} cannot be imported: it needs {error.name!r}, which is not installed"
        )
        raise ConfigError(reason, field="function", value=path) from error
    except Exception as error:
        raise ConfigError(
            f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}", field="function", value=path
        ) from error
    found = getattr(module, class_name, None)
    names = sorted(name for name, each in vars(module).items() if _is_function(each))
    if not _is_function(found):
        what = "is not there" if found is None else "is not a class that derives from arroyo_std.ProcessFunction"
        raise ConfigError(
            f"{class_name!r} {what} in module {module_name!r}",
            field="function",
            value=path,
            allowed=[f"{module_name}:{name}" for name in names],
            suggestion=f"{module_name}:{near}" if (near := nearest(class_name, names)) else None,
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(f"{path} is abstract: it lacks {missing}", field="function", value=path)
    return found


def _is_function(found: object) -> TypeGuard[type[ProcessFunction]]:
    return isinstance(found, type) and issubclass(found, ProcessFunction) and found is not ProcessFunction
