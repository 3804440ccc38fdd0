"""The config that a plan carries: as the constructor resolved it on the driver."""

from __future__ import annotations

import warnings

from google.protobuf.message import Message


def encode_config(config: Message) -> bytes:
    """The form in which plans carry a config."""
    return config.SerializeToString(deterministic=True)


def warn_of_changed_config(operator: str) -> None:
    """Tell the author of a constructor whose `with_config` changed its config. The change is kept in this version."""
    warnings.warn(
        f"with_config of {operator} changes its config, which will have no effect in the next version: "
        "return a changed copy from resolve(config)",
        DeprecationWarning,
        stacklevel=2,
    )
