"""Makes `tests` and `benchmarks` importable by name, also in processes that tests spawn, which inherit the path."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).parent)

# Last: where the core is installed from a wheel, that is the one that is tested.
if ROOT not in sys.path:
    sys.path.append(ROOT)
