"""A tree as a table of its nodes, and as plain data for JSON. May import everything below."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

import gputree
from gputree.core.checks import bare
from gputree.core.forest import SPREAD, STAY, Forest, Test
from gputree.core.schema import Feature, Kind, Schema
from gputree.inspect.words import require_tree
from gputree.learners.forest import BaseForest
from gputree.learners.view import decreases
from gputree.table import FrameLibrary, _frame_library

FORMAT = "gputree-dict-1"

Columns: TypeAlias = dict[str, Any]  # name -> array (N,), or list of texts and None


class Ask(IntEnum):
    """What a node asks; the names, in small letters, are published."""

    LEAF = 0
    THRESHOLD = 1
    KNOWN = 2
    CATEGORIES = 3


KINDS = [ask.name.lower() for ask in Ask]


def trees_to_dataframe(model: Any, library: FrameLibrary | None = None) -> Any:
    """Give the nodes of a tree, or of all trees of a forest, as a data frame, one row a node, breadth first.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of this library.
    library : {"pandas", "polars", "pyarrow"}, optional
        What to build the frame with; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        Where a column has nothing to say of a node, it holds the library's missing value. The columns:

        - ``Tree``, ``Node`` (int): numbers of the tree, from 0, and of the node in it, which `apply` gives.
          ``ID`` (text): the two, as ``"0-3"``.
        - ``Depth`` (int): 0 for the root. ``Parent`` (text): ID of the parent. ``Branch`` (int): the branch of the
          parent that leads here, -1 for the root.
        - ``Kind`` (text): ``"leaf"``; ``"threshold"``, where branch 0 takes x <= ``Split`` and branch 1 the rest;
          ``"known"``, where branch 0 takes known values and branch 1 missing ones; ``"categories"``.
        - ``Feature`` (text): name of the tested column. ``Split`` (float): the threshold. ``Lower`` and ``Upper``
          (float): its bounds, only of a model with soft thresholds.
        - ``Categories`` (text): a JSON list of one list a branch, of the categories that take it.
        - ``Children`` (text): IDs of the children in branch order, with blanks between. ``Missing`` (text): ID of the
          child that takes missing values. ``Unseen`` (text): of a test of categories, ID of the child that takes those
          which it does not list. ``MetMissing`` (bool): whether training rows were missing here; if not, ``Missing``
          is the child of larger weight. A value may also end at the node: then it is the ID of the node itself. Both
          are None where every child takes its share.
        - ``Gain`` (float): impurity of the node less that of its children, by their shares of the whole weight: what
          ``feature_importances_`` adds up. ``Score`` (float): what the criterion gave the test. Both 0 in leaves.
        - ``Impurity`` (float). ``Rows`` (int): training rows of positive weight. ``Weight`` (float): their weight. A
          row that a test sends down every branch is one of the rows of each child, and shares its weight among them.
        - Classes: ``Class`` (of the type of the labels), the predicted one, and for each label its share of the weight
          in ``Share_<label>`` (float). Numbers: ``Value`` (float), the mean. With several outputs the number of the
          output follows: ``Class_0``, ``Share_0_<label>``, ``Value_0`` and so on. Forests that learn no y have none.

    Raises
    ------
    TypeError
        If the model is no tree or forest of this library.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ImportError
        If the library (or, by default, each of the three) is not installed.
    ValueError
        If `library` is none of the three.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.inspect.dump import trees_to_dataframe
    >>> X, y = load_iris(return_X_y=True)
    >>> frame = trees_to_dataframe(DecisionTreeClassifier(max_depth=1).fit(X, y), "pandas")
    >>> frame[["ID", "Parent", "Kind", "Feature", "Split", "Rows", "Class"]]
        ID Parent       Kind    Feature  Split  Rows  Class
    0  0-0    NaN  threshold  feature_2   2.45   150      0
    1  0-1    0-0       leaf        NaN    NaN    50      0
    2  0-2    0-0       leaf        NaN    NaN   100      1
    """
    import narwhals as nw

    found = _frame_library(library)
    if isinstance(model, BaseForest):
        check_is_fitted(model)
    else:
        require_tree(model)
    nodes = Nodes.of(model)
    columns = place_columns(nodes) | question_columns(nodes) | size_columns(nodes) | value_columns(nodes)
    types = {"i": nw.Int64(), "u": nw.UInt64(), "f": nw.Float64(), "b": nw.Boolean(), "O": nw.String()}
    data, schema = {}, {}
    for name, column in columns.items():
        array = np.asarray(column, object) if isinstance(column, list) else column
        schema[name] = types[array.dtype.kind]
        data[name] = [None if x != x else x for x in array.tolist()]  # NaN is no value of a node
    return nw.from_dict(data, schema=schema, backend=found).to_native()


def export_dict(model: Any) -> dict[str, Any]:
    """Give a tree as plain data: dicts, lists, texts, numbers, booleans and None, which ``json.dumps`` takes.

    Nodes stand in one list and name their children by number, so no depth is too deep.

    Parameters
    ----------
    model : estimator
        A fitted tree of this library.

    Returns
    -------
    dict
        Infinite numbers are the texts ``"inf"`` and ``"-inf"``, which ``float`` reads. The keys:

        - ``format``: ``"gputree-dict-1"``. ``gputree``: the version. ``estimator``, ``criterion``: names.
        - ``features``: for each column ``name``, ``kind`` (``"numeric"`` or ``"categorical"``), and if categorical
          ``categories`` and ``declared``, whether these were declared and not merely met.
        - ``outputs``: for each output ``classes``, its labels in order, and their NumPy ``dtype``, or ``{}`` for
          numbers. Labels and categories are texts, numbers or booleans; of any other type, their text.
        - ``nodes``: breadth first, the root is number 0. Every node has ``id``, ``parent`` (None for the root),
          ``depth``, ``kind``, ``rows``, ``weight``, ``impurity``, and ``value``: for each output the list of class
          shares (None where a node predicts nothing), or the mean.

          A node with a test also has ``feature`` (number of the column), ``children`` (numbers, a branch each),
          ``missing`` (number of the child that takes missing values), ``met_missing`` (whether training rows were
          missing there), ``gain`` and ``score`` (see `trees_to_dataframe`). By its ``kind``,

          - ``"threshold"``: the first child takes x <= ``threshold`` in float64, the second all other numbers. Of a
            model with soft thresholds, x between ``lower`` and ``upper`` takes both, see `C45Classifier`;
          - ``"known"``: the first takes known values, the second missing ones;
          - ``"categories"``: ``categories`` has for each child the list of those that take it; all others take
            ``unseen`` (number of a child). ``missing`` and ``unseen`` may be the node itself, where such a value ends,
            or None, where every child takes its share.

    Raises
    ------
    TypeError
        If the model is no tree of this library.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.inspect.dump import export_dict
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = export_dict(DecisionTreeClassifier(max_depth=2).fit(X, y))
    >>> node = tree["nodes"][0]
    >>> while node["kind"] != "leaf":  # enough for thresholds and known values
    ...     right = not X[77][node["feature"]] <= float(node["threshold"])
    ...     node = tree["nodes"][node["children"][right]]
    >>> node["value"], tree["outputs"][0]["classes"]
    ([[0.0, 0.9074..., 0.0925...]], [0, 1, 2])
    """
    require_tree(model)
    nodes = Nodes.of(model)
    return {
        "format": FORMAT,
        "gputree": gputree.__version__,
        "estimator": type(model).__name__,
        "criterion": model.criterion,
        "features": [feature_entry(feature) for feature in nodes.schema.features],
        "outputs": [
            {} if labels is None else {"classes": [plain(label) for label in labels], "dtype": labels.dtype.str}
            for labels in nodes.classes
        ],
        "nodes": list(node_entries(nodes)),
    }


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a fitted model with what is derived from its arrays, (N,) each; ``classes`` has None for numbers.

    ``kind`` has the numbers of `Ask`.
    """

    forest: Forest
    value: NDArray[np.float64]
    schema: Schema
    classes: list[NDArray[Any] | None]
    kind: NDArray[np.intp]
    rows: NDArray[np.int64]
    weight: NDArray[np.float64]
    gain: NDArray[np.float64]
    bounds: NDArray[np.float64] | None = None  # (N, 2) of soft thresholds

    @classmethod
    def of(cls, model: Any) -> Nodes:
        """Derive them."""
        forest: Forest = model.forest_
        stats = forest.stats.T
        weight = model.layout_.weight(stats)
        kind = np.full(forest.n_nodes, Ask.LEAF, np.intp)
        kind[forest.kind == Test.THRESHOLD] = Ask.THRESHOLD
        kind[(forest.kind == Test.THRESHOLD) & (forest.low == np.inf) & (forest.missing == 1)] = Ask.KNOWN
        kind[forest.kind == Test.LOOKUP] = Ask.CATEGORIES
        classes: list[NDArray[Any] | None] = [None] * model.layout_.n_outputs if is_regressor(model) else []
        if is_classifier(model):
            classes = [*model.classes_] if isinstance(model.classes_, list) else [model.classes_]
        with np.errstate(over="ignore", invalid="ignore"):  # impurities of huge numbers
            gain = decreases(forest, weight)
        rows = model.layout_.count(stats)
        bounds, weight = getattr(model, "threshold_bounds_", None), weight * model.weight_unit_
        return cls(forest, model._values, model.schema_, classes, kind, rows, weight, gain, bounds)

    def lists(self, node: int) -> list[list[Any]]:
        """The categories of every branch of a lookup, as plain data."""
        cells = slice(*self.forest.lookup_ptr[node : node + 2])
        categories = self.schema.features[self.forest.feature[node]].categories
        found: list[list[Any]] = [[] for _ in range(self.forest.n_children[node])]
        pairs = zip(self.forest.lookup_code[cells].tolist(), self.forest.lookup_branch[cells].tolist(), strict=True)
        for code, branch in pairs:
            found[branch].append(plain(categories[code - 1]))
        return found

    def outputs(self) -> Iterator[tuple[NDArray[Any] | None, NDArray[np.float64]]]:
        """Classes of every output, and its columns of values f8 (N, classes or 1)."""
        sizes = [1 if labels is None else labels.size for labels in self.classes]
        parts = np.split(self.value, np.cumsum(sizes)[:-1], axis=1)
        return zip(self.classes, parts, strict=bool(self.classes))


def place_columns(nodes: Nodes) -> Columns:
    """Where the nodes are."""
    forest = nodes.forest
    node = np.arange(forest.n_nodes)
    tree = np.searchsorted(forest.roots, node, side="right") - 1
    ids = node_ids(forest)
    parent = forest.parent.astype(np.int64)
    branch = np.where(parent < 0, -1, node - forest.first_child[parent])
    parents = [None if p < 0 else ids[p] for p in parent.tolist()]
    return {
        "Tree": tree,
        "Node": node - forest.roots[tree],
        "ID": ids,
        "Depth": forest.depth.astype(np.int64),
        "Parent": parents,
        "Branch": branch,
    }


def node_ids(forest: Forest) -> list[str]:
    """Number of the tree and of the node in it, as one text."""
    tree = np.searchsorted(forest.roots, np.arange(forest.n_nodes), side="right") - 1
    inside = np.arange(forest.n_nodes) - forest.roots[tree]
    return [f"{t}-{n}" for t, n in zip(tree.tolist(), inside.tolist(), strict=True)]


def question_columns(nodes: Nodes) -> Columns:
    """What the nodes ask, and where the answers lead."""
    forest, ids, names = nodes.forest, node_ids(nodes.forest), nodes.schema.names
    kind, feature = nodes.kind.tolist(), forest.feature.tolist()
    first, count = forest.first_child.tolist(), forest.n_children.tolist()
    missing, unseen = (
        list(map(end, own.tolist(), range(forest.n_nodes), first)) for own in (forest.missing, forest.unseen)
    )
    named = nodes.schema.kinds == Kind.CATEGORICAL
    lists = [nodes.lists(i) if k == Ask.CATEGORIES else None for i, k in enumerate(kind)]
    return {
        "Kind": [KINDS[k] for k in kind],
        "Feature": [names[f] if k else None for k, f in zip(kind, feature, strict=True)],
        "Split": np.where(nodes.kind == Ask.THRESHOLD, forest.low, np.nan),
        **({} if nodes.bounds is None else dict(zip(("Lower", "Upper"), nodes.bounds.T, strict=True))),
        "Categories": [None if own is None else json.dumps(own, ensure_ascii=False) for own in lists],
        "Children": [" ".join(ids[f : f + n]) if n else None for f, n in zip(first, count, strict=True)],
        "Missing": [ids[m] if k and m is not None else None for k, m in zip(kind, missing, strict=True)],
        "Unseen": [
            ids[u] if k and named[j] and u is not None else None for k, j, u in zip(kind, feature, unseen, strict=True)
        ],
        "MetMissing": forest.met_missing.astype(bool),
    }


def size_columns(nodes: Nodes) -> Columns:
    """How many rows the nodes hold, and how mixed they are."""
    return {
        "Gain": nodes.gain,
        "Score": nodes.forest.score,
        "Impurity": nodes.forest.impurity,
        "Rows": nodes.rows,
        "Weight": nodes.weight,
    }


def value_columns(nodes: Nodes) -> Columns:
    """What the nodes predict."""
    columns: Columns = {}
    for o, (labels, values) in enumerate(nodes.outputs()):
        suffix = f"_{o}" if len(nodes.classes) > 1 else ""
        if labels is None:
            columns[f"Value{suffix}"] = values[:, 0]
            continue
        best = labels[values.argmax(axis=1)]
        null = np.isnan(values[:, 0])
        if null.any() or best.dtype.kind not in "iufb":
            own = best.tolist() if best.dtype.kind in "iufb" else map(str, best)
            best = [None if gone else label for gone, label in zip(null, own, strict=True)]
        columns[f"Class{suffix}"] = best
        texts = [str(label) for label in labels]
        columns |= {f"Share{suffix}_{text}": share for text, share in zip(texts, values.T, strict=True)}
    return columns


def node_entries(nodes: Nodes) -> Iterator[dict[str, Any]]:
    """The nodes as dicts, in order."""
    forest = nodes.forest
    parent, depth, kind = forest.parent.tolist(), forest.depth.tolist(), nodes.kind.tolist()
    rows, weight, impurity = nodes.rows.tolist(), nodes.weight.tolist(), forest.impurity.tolist()
    values = [part[:, 0].tolist() if labels is None else shares(part) for labels, part in nodes.outputs()]
    for i, k in enumerate(kind):
        yield {
            "id": i,
            "parent": None if parent[i] < 0 else parent[i],
            "depth": depth[i],
            "kind": KINDS[k],
            **(question_entry(nodes, i) if k else {}),
            "rows": rows[i],
            "weight": plain(weight[i]),
            "impurity": plain(impurity[i]),
            "value": [own[i] for own in values],
        }


def shares(values: NDArray[np.float64]) -> list[list[float] | None]:
    """Class shares (N, classes), None of nodes that predict nothing."""
    return [row if row[0] == row[0] else None for row in values.tolist()]


def question_entry(nodes: Nodes, i: int) -> dict[str, Any]:
    """What a node asks."""
    forest, kind = nodes.forest, nodes.kind[i]
    first, feature = int(forest.first_child[i]), int(forest.feature[i])
    entry: dict[str, Any] = {"feature": feature}
    if kind == Ask.THRESHOLD:
        entry["threshold"] = plain(float(forest.low[i]))
        if nodes.bounds is not None:
            entry["lower"], entry["upper"] = map(plain, nodes.bounds[i].tolist())
    if kind == Ask.CATEGORIES:
        entry["categories"] = nodes.lists(i)
    entry |= {
        "children": list(range(first, first + int(forest.n_children[i]))),
        "missing": end(int(forest.missing[i]), i, first),
        "met_missing": bool(forest.met_missing[i]),
        "gain": plain(float(nodes.gain[i])),
        "score": plain(float(forest.score[i])),
    }
    if kind == Ask.CATEGORIES:
        entry["unseen"] = end(int(forest.unseen[i]), i, first)
    return entry


def end(branch: int, node: int, first_child: int) -> int | None:
    """The node to which a branch leads: a child, or the node itself; None for all children."""
    return None if branch == SPREAD else node if branch == STAY else first_child + branch


def feature_entry(feature: Feature) -> dict[str, Any]:
    """One column."""
    entry: dict[str, Any] = {"name": feature.name, "kind": feature.kind.name.lower()}
    if feature.kind == Kind.CATEGORICAL:
        entry |= {"categories": [plain(c) for c in feature.categories], "declared": feature.declared}
    return entry


def plain(value: Any) -> Any:
    """A value as JSON has it: what is no text, finite number or boolean becomes its text."""
    value = bare(value)
    if isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
