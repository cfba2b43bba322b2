"""Small real and textbook tables that travel with the package, and generators of others.

Nothing here is fetched from a network. Sources and licences of the tables are in ``gputree/data/SOURCES.md``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gputree.generators import Sample, make_dnf, make_higgs_like, make_majority, make_parity, make_unanimity
from gputree.table import Categories, Table

__all__ = [
    "Table",
    "load_classroom",
    "load_lenses",
    "load_penguins",
    "load_restaurant",
    "load_weather",
    "make_dnf",
    "make_higgs_like",
    "make_majority",
    "make_monks",
    "make_parity",
    "make_unanimity",
]

Weather: TypeAlias = Literal["nominal", "numeric", "unknown"]
Restaurant: TypeAlias = Literal["aima", "chapter"]
Classroom: TypeAlias = Literal["dtl", "eight_patterns", "exercise_18_2", "papaya", "xor"]
Problem: TypeAlias = Literal[1, 2, 3]

_PENGUINS = (
    "Horst AM, Hill AP, Gorman KB (2020), palmerpenguins, doi:10.5281/zenodo.3960218; data by Gorman KB, Williams TD, "
    "Fraser WR (2014), PLoS ONE 9(3): e90081, doi:10.1371/journal.pone.0090081. Licence: CC0 1.0"
)
_WEATHER = "Quinlan JR (1986), Induction of decision trees, Machine Learning 1: 81-106, table 1. Facts"
_GOLF = "Quinlan JR (1993), C4.5: Programs for Machine Learning, chapters 2 and 3. Facts"
_LENSES = (
    "Cendrowska J (1987), PRISM, International Journal of Man-Machine Studies 27: 349-370; UCI Machine Learning "
    "Repository, Lenses. Licence: CC BY 4.0"
)
_RESTAURANT = "Russell S, Norvig P, Artificial Intelligence: A Modern Approach, after Procaccia AD, lecture 16. Facts"
_SHALEV_SHWARTZ = "Shalev-Shwartz S, Ben-David S (2014), Understanding Machine Learning"
_MONKS = "Thrun SB and others (1991), The MONK's problems, CMU-CS-91-197; cells and rules are theirs"

_OUTLOOK = ("sunny", "overcast", "rainy")
_WINDY = ("TRUE", "FALSE")
_YES_NO = ("N", "Y")
_CLASSROOM_TABLES: Mapping[str, tuple[str, str, Categories]] = {  # target, source, categories
    "dtl": (
        "y",
        "Lecture notes on decision tree learning that derive DTL(X, Y, features, probs). Facts",
        {"f1": ("1", "2", "3"), "f2": ("1", "2", "3")},
    ),
    "eight_patterns": ("y", "Nilsson NJ, Introduction to Machine Learning, chapter 6, 6.2.2. Facts", {}),
    "exercise_18_2": ("y", f"{_SHALEV_SHWARTZ}, exercise 18.2. Facts", {}),
    "papaya": (
        "tasty",
        f"{_SHALEV_SHWARTZ}, chapter 18: the truth table of its first tree. Facts",
        {"color": ("in range", "other"), "softness": ("gives slightly", "other")},
    ),
    "xor": ("y", "Procaccia AD, lecture 16. Facts", {"x1": ("f", "t"), "x2": ("f", "t")}),
}
_MONK_VALUES: Categories = {
    "head_shape": ("round", "square", "octagon"),
    "body_shape": ("round", "square", "octagon"),
    "is_smiling": ("yes", "no"),
    "holding": ("sword", "balloon", "flag"),
    "jacket_color": ("red", "yellow", "green", "blue"),
    "has_tie": ("yes", "no"),
}


def load_penguins() -> Table:
    """Load the Palmer penguins: size, sex and island of 344 penguins of three species.

    Returns
    -------
    Table
        344 rows, 8 columns. Strings: ``species`` (the target: Adelie, Chinstrap, Gentoo), ``island`` and ``sex`` (11
        missing). Numbers: ``bill_length_mm``, ``bill_depth_mm``, ``flipper_length_mm`` (millimetres) and
        ``body_mass_g`` (grams), each missing in the same 2 rows, and ``year`` (2007 to 2009).

    Notes
    -----
    Horst, Hill & Gorman (2020), *palmerpenguins*, doi:10.5281/zenodo.3960218; data of Gorman, Williams & Fraser (2014),
    *PLoS ONE* 9(3): e90081. Licence: CC0 1.0.

    Examples
    --------
    >>> table = load_penguins()
    >>> sorted(set(table.column(table.target)))
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    return _read("penguins", "species", _PENGUINS, text=("species", "island", "sex"))


def load_weather(kind: Weather = "nominal") -> Table:
    """Load Quinlan's 14 days with their weather, and whether to play.

    Parameters
    ----------
    kind : {"nominal", "numeric", "unknown"}, default="nominal"
        Whether temperature and humidity are words, or numbers (degrees Fahrenheit, per cent), or numbers with the
        outlook of the twelfth day, which is overcast, missing.

    Returns
    -------
    Table
        14 rows, 5 columns: ``outlook`` (sunny, overcast, rainy), ``temperature`` (hot, mild, cool, or a number),
        ``humidity`` (high, normal, or a number), ``windy`` (TRUE, FALSE), and the target ``play`` (9 yes, 5 no).
        Columns of words have their categories, in this order.

    Raises
    ------
    ValueError
        If `kind` is none of the three.

    Notes
    -----
    Quinlan (1986), *Machine Learning* 1: 81-106, table 1; numbers and the missing outlook from Quinlan (1993), *C4.5*,
    chapters 2 and 3. Facts of a teaching table, also known as golf and play tennis.

    Examples
    --------
    >>> table = load_weather()
    >>> table.categories["outlook"]
    ('sunny', 'overcast', 'rainy')
    """
    _one_of("kind", kind, get_args(Weather))
    if kind == "nominal":
        words: Categories = {
            "outlook": _OUTLOOK,
            "temperature": ("hot", "mild", "cool"),
            "humidity": ("high", "normal"),
            "windy": _WINDY,
        }
        return _read("weather", "play", _WEATHER, words, ("play",))
    table = _read("golf", "play", _GOLF, {"outlook": _OUTLOOK, "windy": _WINDY}, ("play",))
    if kind == "unknown":
        table.column("outlook")[11] = None
    return table


def load_lenses() -> Table:
    """Load the contact lenses: what suits whom, for every combination of four attributes.

    Returns
    -------
    Table
        24 rows, 5 columns of words with their categories: ``age`` (young, pre-presbyopic, presbyopic),
        ``spectacle-prescrip`` (myope, hypermetrope), ``astigmatism`` (no, yes), ``tear-prod-rate`` (reduced, normal),
        and the target ``contact-lenses`` (5 soft, 4 hard, 15 none).

    Notes
    -----
    Cendrowska (1987), *International Journal of Man-Machine Studies* 27: 349-370; UCI Machine Learning Repository,
    *Lenses*. Licence: CC BY 4.0.

    Examples
    --------
    >>> load_lenses().column("contact-lenses")[:2].tolist()
    ['none', 'soft']
    """
    words: Categories = {
        "age": ("young", "pre-presbyopic", "presbyopic"),
        "spectacle-prescrip": ("myope", "hypermetrope"),
        "astigmatism": ("no", "yes"),
        "tear-prod-rate": ("reduced", "normal"),
    }
    return _read("lenses", "contact-lenses", _LENSES, words, ("contact-lenses",))


def load_restaurant(variant: Restaurant = "aima") -> Table:
    """Load the restaurant: twelve situations, and whether to wait for a table.

    Parameters
    ----------
    variant : {"aima", "chapter"}, default="aima"
        The table of the book, or that of the lecture notes, which differs in one cell: in the tenth row ``Est`` is
        0-30 there, and 10-30 in the book. With 0-30 the branch of a full restaurant is split on ``Est``; with 10-30
        five columns tie there, and the first, ``Hun``, gives the published tree.

    Returns
    -------
    Table
        12 rows, 11 columns of words with their categories: ``Alt``, ``Bar``, ``Fri``, ``Hun`` (N, Y), ``Pat`` (None,
        Some, Full), ``Price`` ($, $$, $$$), ``Rain``, ``Res`` (N, Y), ``Type`` (French, Thai, Burger, Italian), ``Est``
        (0-10, 10-30, 30-60, >60), and the target ``Wait`` (6 Y, 6 N).

    Raises
    ------
    ValueError
        If `variant` is neither.

    Notes
    -----
    Russell and Norvig, *Artificial Intelligence: A Modern Approach*; Procaccia, lecture 16. Facts of a teaching table.

    Examples
    --------
    >>> [load_restaurant(variant).column("Est")[9] for variant in ("aima", "chapter")]
    ['10-30', '0-30']
    """
    _one_of("variant", variant, get_args(Restaurant))
    words: dict[str, tuple[str, ...]] = dict.fromkeys(("Alt", "Bar", "Fri", "Hun", "Rain", "Res"), _YES_NO)
    words |= {"Pat": ("None", "Some", "Full"), "Price": ("$", "$$", "$$$")}
    words |= {"Type": ("French", "Thai", "Burger", "Italian"), "Est": ("0-10", "10-30", "30-60", ">60")}
    table = _read("restaurant", "Wait", _RESTAURANT, words, ("Wait",))
    if variant == "aima":
        return table
    table.column("Est")[9] = "0-30"
    words["Est"] = ("0-10", "0-30", "10-30", "30-60", ">60")
    return Table(table.names, table.columns, table.target, table.source, words)


def load_classroom(name: Classroom) -> Table:
    """Load one of the tiny tables that lectures split by hand.

    Parameters
    ----------
    name : {"dtl", "eight_patterns", "exercise_18_2", "papaya", "xor"}
        - ``"dtl"``: six rows, two columns of the categories 1, 2, 3 (DTL lecture notes).
        - ``"eight_patterns"``: three bits, labelled by x1 x3 (Nilsson, chapter 6, 6.2.2).
        - ``"exercise_18_2"``: four points, of which the greedy tree of depth 2 gets one wrong, though an errorless tree
          exists (Shalev-Shwartz and Ben-David, exercise 18.2).
        - ``"papaya"``: the truth table of the papaya tree (Shalev-Shwartz and Ben-David, chapter 18).
        - ``"xor"``: exclusive or, where every first test has gain 0 (Procaccia, lecture 16).

    Returns
    -------
    Table
        The target, called y or tasty, is the last column. Bits and y are numbers, truth values words.

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> load_classroom("exercise_18_2").column("x1")
    array([1., 1., 1., 0.])
    """
    _one_of("name", name, get_args(Classroom))
    target, source, categories = _CLASSROOM_TABLES[name]
    return _read(name, target, source, categories, (target,) if categories and name != "dtl" else ())


def make_monks(problem: Problem = 1, *, n_rows: int | None = None, noise: float | None = None, seed: int = 0) -> Table:
    """Make a table of the monk's problems: robots with six attributes, labelled by one of three rules.

    Parameters
    ----------
    problem : {1, 2, 3}, default=1
        The rule that makes a robot a monk: (1) head and body have the same shape, or the jacket is red; (2) exactly two
        of the six attributes have their first value; (3) the jacket is green and it holds a sword, or the jacket is not
        blue and the body is no octagon.
    n_rows : int, optional
        Number of rows, drawn independently; by default each of the 432 robots once, the first attribute slowest.
    noise : float, optional
        Chance, for each row by itself, that its class is the wrong one; by default 0.05 in problem 3, else 0.
    seed : int, default=0
        Non-negative. The first drawn rows of a longer table with the same seed are the shorter table.

    Returns
    -------
    Table
        7 columns of words: ``head_shape``, ``body_shape`` (round, square, octagon), ``is_smiling`` (yes, no),
        ``holding`` (sword, balloon, flag), ``jacket_color`` (red, yellow, green, blue), ``has_tie`` (yes, no), and the
        target ``monk`` (no, yes). The attributes have their categories, in this order.

    Raises
    ------
    TypeError
        If a number is not of its type.
    ValueError
        If `problem` is none of the three, or a number is out of range.

    Notes
    -----
    Thrun and others (1991), *The MONK's problems: a performance comparison of different learning algorithms*,
    CMU-CS-91-197. Rows and noise are drawn here; the published training sets are other samples of the same cells.

    Examples
    --------
    >>> monk = make_monks(1).column("monk")
    >>> len(monk), int((monk == "yes").sum())
    (432, 216)
    """
    _one_of("problem", problem, get_args(Problem))
    share = (0.05 if problem == 3 else 0.0) if noise is None else noise
    sizes = tuple(len(values) for values in _MONK_VALUES.values())
    cells, wrong = Sample(n_rows, share, seed).cells(int(np.prod(sizes)))
    a = np.stack(np.unravel_index(cells, sizes)) + 1  # values count from 1, as in the published rules
    rules = {
        1: (a[0] == a[1]) | (a[4] == 1),
        2: (a == 1).sum(axis=0) == 2,
        3: ((a[4] == 3) & (a[3] == 1)) | ((a[4] != 4) & (a[1] != 3)),
    }
    columns = [np.array(values, object)[a[i] - 1] for i, values in enumerate(_MONK_VALUES.values())]
    monk = np.array(["no", "yes"], object)[(rules[problem] ^ wrong).astype(int)]
    return Table((*_MONK_VALUES, "monk"), (*columns, monk), "monk", _MONKS, _MONK_VALUES)


def _read(
    name: str, target: str, source: str, categories: Categories | None = None, text: tuple[str, ...] = ()
) -> Table:
    """The table in ``data/<name>.csv``; columns neither in `categories` nor in `text` are numbers."""
    words = categories or {}
    lines = resources.files("gputree").joinpath(f"data/{name}.csv").read_text(encoding="utf-8").splitlines()
    names, *rows = csv.reader(lines)
    columns = tuple(
        _strings(cells) if name in words or name in text else _numbers(cells)
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    )
    return Table(tuple(names), columns, target, source, words)


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not offered; choose one of {', '.join(map(repr, allowed))}")


def _strings(cells: tuple[str, ...]) -> NDArray[np.object_]:
    return np.array([cell or None for cell in cells], dtype=object)


def _numbers(cells: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
