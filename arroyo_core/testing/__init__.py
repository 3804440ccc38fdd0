"""The test kit has moved to a distribution of its own; this name of it works for one more version."""

import sys
import warnings
from importlib import import_module

from arroyo_core.plugin import known_elsewhere

_DISTRIBUTION = known_elsewhere("modules")["testing"]
_MODULE = _DISTRIBUTION.replace("-", "_")

try:
    # In place of this module, so that modules inside it are found too.
    sys.modules[__name__] = import_module(_MODULE)
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{__name__} has moved: pip install {_DISTRIBUTION}", name=__name__) from error
warnings.warn(f"{__name__} has moved: import {_MODULE} instead", DeprecationWarning, stacklevel=2)
