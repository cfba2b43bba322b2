"""`pytest -p tests.without_numba`: the suite as on a machine where Numba is not installed."""

import sys

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Called for plugins only: this file is also imported to look for doctests."""
    sys.modules["numba"] = None  # type: ignore[assignment]
