"""`pytest -p tests.without_numba`: the suite as on a machine where Numba is not installed."""

import sys

sys.modules["numba"] = None  # type: ignore[assignment]
