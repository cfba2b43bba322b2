"""What a fitted tree or forest, or a set of rules, tells of itself.

The one module below `inspect` that calls up: each method imports, when it is called, the function that does its work.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike


class FrameLooks:
    """What trees and forests have alike."""

    def trees_to_dataframe(self, library: Any = None) -> Any:
        """The trees as a data frame, one row a node; see `gputree.inspect.dump.trees_to_dataframe`."""
        from gputree.inspect.dump import trees_to_dataframe

        return trees_to_dataframe(self, library)


class Looks(FrameLooks):
    """Methods of trees that show them."""

    def split_table(self, X: Any, y: Any, node: int = 0, sample_weight: ArrayLike | None = None) -> Any:
        """The best test of every feature at a node, with gains and all that they are made of.

        See `gputree.inspect.split_table.split_table_of`.
        """
        from gputree.inspect.split_table import split_table_of

        return split_table_of(self, X, y, node, sample_weight)

    def _tree_html(self) -> str:
        """The tree as HTML; nothing before a fit."""
        if not hasattr(self, "forest_"):
            return ""
        from gputree.inspect.html import tree_html

        return tree_html(self)

    def rules(self) -> Any:
        """The tree as a set of rules, one a leaf; see `gputree.inspect.rules.rules`."""
        from gputree.inspect.rules import rules

        return rules(self)

    def export_dict(self) -> dict[str, Any]:
        """The tree as plain lists and numbers, ready for JSON; see `gputree.inspect.dump.export_dict`."""
        from gputree.inspect.dump import export_dict

        return export_dict(self)

    def to_sklearn(self) -> Any:
        """The same tree as an estimator of scikit-learn; see `gputree.inspect.convert.to_sklearn`."""
        from gputree.inspect.convert import to_sklearn

        return to_sklearn(self)


class RuleLooks:
    """Methods of sets of rules that show them."""

    def to_frame(self: Any, library: Any = None) -> Any:
        """The rules as a data frame, one row a rule; see `gputree.inspect.rules.rules_to_frame`."""
        from gputree.inspect.rules import rules_to_frame

        return rules_to_frame(self, library)

    def score(self: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on rows X with labels y, or R^2 with numbers y, weighted by sample_weight (n_rows,) if given."""
        from sklearn.metrics import accuracy_score, r2_score

        usual = r2_score if self.classes is None else accuracy_score
        return float(usual(y, self.predict(X), sample_weight=sample_weight))

    def dnf(self: Any, outcome: Any) -> str:
        """When an outcome holds, as a sum of products; see `gputree.inspect.rules.dnf`."""
        from gputree.inspect.rules import dnf

        return dnf(self, outcome)
