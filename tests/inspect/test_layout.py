"""Boxes of any size in tidy rows, and which nodes get one."""

from __future__ import annotations

import numpy as np
import pytest

from gputree.inspect.boxes import Boxes, Look
from gputree.inspect.layout import ABREAST, GAP, LEVEL_GAP, hang, place
from gputree.inspect.outline import Limits, Outline, subtree_sizes
from tests.inspect.samples import MAKERS, sample


def random_tree(rng: np.random.Generator, n: int) -> list[int]:
    """Parents in preorder."""
    children: list[list[int]] = [[] for _ in range(n)]
    for i in range(1, n):
        children[int(rng.integers(0, i) if rng.random() < 0.6 else max(0, i - 3))].append(i)
    parent, todo = [], [(0, -1)]
    while todo:
        node, above = todo.pop()
        parent.append(above)
        todo += [(child, len(parent) - 1) for child in reversed(children[node])]
    return parent


@pytest.mark.parametrize("seed", range(30))
def test_boxes_keep_their_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = random_tree(rng, int(rng.integers(1, 120)))
    width, height = rng.uniform(1, 12, len(parent)), rng.uniform(1, 4, len(parent))
    leaf = [i not in set(parent) for i in range(len(parent))]
    hanging = hang(parent, leaf, 0.4)
    places = place(parent, hanging, width, height)
    x, y = places.x, places.y
    assert x.min() >= 0
    assert (x + width).max() <= places.width + 1e-9
    assert (y + height).max() <= places.height + 1e-9
    for i in range(len(parent)):
        level = np.flatnonzero(places.level == places.level[i])
        others = level[level != i]
        apart = np.maximum(x[others] - (x[i] + width[i]), x[i] - (x[others] + width[others]))
        assert (apart >= GAP - 1e-9).all()
    rows = np.array(hanging.row)
    assert (places.top[1:] > places.bottom[:-1]).all()
    for i, p in enumerate(parent):
        if p >= 0:
            assert places.level[i] == places.level[p] + 1 + max(rows[i], 0)
            assert (rows[i] >= 0) == (leaf[i] and sum(leaf[j] for j in range(len(parent)) if parent[j] == p) > ABREAST)


def test_parents_stand_over_the_middle_of_their_children() -> None:
    parent = [-1, 0, 1, 1, 0, 0, 5]
    width = np.array([4.0, 2, 6, 1, 3, 2, 9])
    hanging = hang(parent, [False] * 7, 1.0)
    places = place(parent, hanging, width, np.ones(7))
    middle = places.x + width / 2
    assert middle[1] == pytest.approx((middle[2] + middle[3]) / 2)
    assert middle[0] == pytest.approx((middle[1] + middle[5]) / 2)
    assert middle[5] == middle[6]
    assert places.y.tolist() == [
        0,
        *[1 + LEVEL_GAP] * 1,
        *[2 + 2 * LEVEL_GAP] * 2,
        *[1 + LEVEL_GAP] * 2,
        2 + 2 * LEVEL_GAP,
    ]


def test_a_mirrored_tree_has_the_mirrored_layout() -> None:
    """Also where small subtrees stand between large ones, which a single sweep would push to one side."""
    deep = [-1, 0, 1, 1, 0, 0, 0, 6, 6]
    order = [0, 6, 8, 7, 5, 4, 1, 3, 2]  # the same tree read from the right
    width = np.array([3.0, 2, 5, 4, 1, 2, 2, 4, 5])
    back = [order.index(deep[i]) if deep[i] >= 0 else -1 for i in order]
    one = place(deep, hang(deep, [False] * 9, 1.0), width, np.ones(9))
    other = place(back, hang(back, [False] * 9, 1.0), width[order], np.ones(9))
    np.testing.assert_allclose(one.width - (one.x + width)[order], other.x)


def test_a_deep_chain() -> None:
    n = 2 * 1499 + 1
    parent = [-1, *np.repeat(np.arange(0, n - 1, 2), 2)]
    places = place(parent, hang(parent, [False] * n, 1.0), np.ones(n), np.ones(n))
    assert places.level.max() == 1499


def test_leaves_hang_in_a_block_about_as_wide_as_high() -> None:
    parent = [-1] + [0] * 40
    hanging = hang(parent, [False] + [True] * 40, 0.4)
    assert max(hanging.column) + 1 == 4
    assert max(hanging.row) + 1 == 10
    assert hanging.row[1:12] == [*range(10), 0]


def outlined(name: str, limits: Limits) -> Outline:
    boxes = Boxes(sample(name), None, None, Look())
    return Outline(boxes.words, boxes.weight, limits)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(max_depth=2), Limits(most=30), Limits(widest=5), Limits(1, 12, 4), Limits(most=1, widest=2)],
)
def test_what_is_shown_and_hidden_adds_up(name: str, limits: Limits) -> None:
    forest = sample(name).forest_
    items = outlined(name, limits).items()
    assert sum(item.nodes + item.hidden for item in items) == forest.n_nodes
    assert all(item.parent < place for place, item in enumerate(items))
    if limits == Limits():
        assert not any(item.hidden for item in items)
    if limits.max_depth is not None:
        assert max(forest.depth[item.node] for item in items) <= limits.max_depth
    children = np.bincount([item.parent for item in items[1:]], minlength=1)
    if limits.widest is not None:
        assert children.max() <= limits.widest
    if limits.most is not None:
        assert len(items) <= max(limits.most, 1 + children[0])


def test_the_nodes_that_most_rows_pass_are_shown() -> None:
    outline = outlined("large", Limits(most=50))
    shown = {item.node for item in outline.items()}
    hidden = [i for i in range(299) if i not in shown]
    opened = set(outline.open)
    weight = outline.weight
    closed = [item.node for item in outline.items() if item.hidden]
    assert max(weight[closed]) <= min(weight[list(opened)])
    assert len(shown) + len(hidden) == 299


def test_of_many_branches_those_that_other_values_take_stay() -> None:
    items = outlined("wide", Limits(widest=2)).items()
    assert [item.branches for item in items] == [0, 0, 299]
    assert items[1].branch is not None
    assert items[1].branch.marks == ("or missing", "or other")


def test_sizes_of_subtrees() -> None:
    forest = sample("counties_multiway").forest_
    size = subtree_sizes(forest)
    for node in range(forest.n_nodes):
        children = range(forest.first_child[node], forest.first_child[node] + forest.n_children[node])
        assert size[node] == 1 + sum(size[child] for child in children)
