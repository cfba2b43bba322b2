"""Warnings that name the user's line, however deep the library is in its work. May import nothing."""

from __future__ import annotations

import sys
import warnings

INSIDE = frozenset({"gputree", "sklearn", "joblib"})  # packages whose lines say nothing to a user


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the library, be it by way of scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
