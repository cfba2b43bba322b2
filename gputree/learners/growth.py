"""Growth that a rule may end, of trees and forests. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.core.forest import Forest
from gputree.core.target import Layout
from gputree.engine.recipe import Recipe
from gputree.learners.grower import Grower, Prepared
from gputree.learners.held_out import dense
from gputree.learners.stopped import Fit, reasons, stopped, words

REASONS = ("_stop_codes", "_stop_words")  # attributes that say why leaves are some


class StoppedGrower(Grower):
    """What grows by a rule of `gputree.stopping`, where there is one, and tells why each leaf is one."""

    stopping: Any = None  # where a class has that parameter
    _stop_codes: NDArray[np.uint8]
    _stop_words: list[str]

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Prepared:
        """With a rule that may end growth, where there is one."""
        ready = super()._prepare(X, y, sample_weight)
        if self.stopping is None:
            return ready
        rows = ready.rows
        read = partial(self._read_rows, n_outputs=rows.target.layout.n_outputs)
        fit = Fit(dense(rows.X), rows.target, ready.seed, read)
        return replace(ready, recipe=stopped(self.stopping, ready.recipe, fit))

    def _begin_reasons(self, old: Forest | None = None) -> None:
        """Forget the reasons of leaves, but for those of old trees that stay."""
        codes = self.__dict__.pop("_stop_codes", np.zeros(0, np.uint8))
        self.__dict__.pop("_stop_words", None)
        if self.stopping is not None:
            self._stop_codes, self._stop_words = codes[: 0 if old is None else old.n_nodes], words(self.stopping)

    def _add_reasons(self, recipe: Recipe, layout: Layout, grown: Forest, kept: Forest) -> None:
        """Remember the reasons of trees that have just been grown, and of what pruning kept of them."""
        if self.stopping is not None:
            codes = reasons(self.stopping, recipe, layout, grown, kept)
            self._stop_codes = np.concatenate([self._stop_codes, codes])

    def _stop_texts(self) -> list[str] | None:
        """The reasons that there can be; None without a rule."""
        return None if self.stopping is None else words(self.stopping)

    def _tell_reasons(self, tree: Any, number: int) -> None:
        """Give one of the trees its part of the reasons."""
        if self.stopping is not None:
            own = slice(*[*self.forest_.roots, self.forest_.n_nodes][number : number + 2])
            tree._stop_codes, tree._stop_words = self._stop_codes[own], self._stop_words

    @property
    def stop_reason_(self) -> NDArray[np.str_]:
        """Why every node of trees with ``stopping`` is a leaf, str (n_nodes,); empty for those that are none."""
        check_is_fitted(self, "forest_")
        if "_stop_codes" not in vars(self):
            raise AttributeError("stop_reason_ is there where stopping= is given; see gputree.stopping")
        return np.array(self._stop_words)[self._stop_codes]
