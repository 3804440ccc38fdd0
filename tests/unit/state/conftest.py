"""Makes the shared test support importable, also from the integration tests of state."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
