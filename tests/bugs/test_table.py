"""Every known fault of tree learners has a test, or a reason why it cannot occur yet."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.bugs.table import TABLE, At, Reason

TESTS = Path(__file__).parents[1]
NUMBERS = {
    "N": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25),
    "T": (1, 2, 4, 5, 6, 7, 8, 10, 11, 13, 14),
    "O": (1, 2, 4, 5),
    "M": (1, 2, 4, 5, 7, 8, 10, 11),
    "C": (1, 2, 4, 5, 7, 8),
    "L": (1, 2, 4, 5, 7, 8, 10, 11),
    "W": (1, 2, 4, 5, 7, 8),
    "S": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14),
    "P": (1, 2),
    "F": (1, 2, 4, 5, 7, 8, 10),
    "I": (1, 2),
    "E": (1, 2, 4, 5),
    "Z": (1, 2),
    "G": (1, 2, 4, 5, 7, 8),
    "Q": (1, 2, 4, 5),
    "U": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26),
}
CASES = [f"{kind}{number:02}" for kind, numbers in NUMBERS.items() for number in numbers]


@cache
def functions_of(file: Path) -> frozenset[str]:
    """Names of the test functions of a file."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return frozenset(f.name for f in body if isinstance(f, ast.FunctionDef) and f.name.startswith("test_"))


def cases_of(name: str) -> set[str]:
    """The cases that the name of a test claims."""
    return set(re.findall(r"(?<=_)[A-Z]\d\d(?=_)", name))


def places(case: str) -> tuple[At, ...]:
    entry = TABLE[case]
    return () if isinstance(entry, Reason) else entry


def test_the_table_lists_every_case_and_no_other() -> None:
    assert sorted(TABLE) == sorted(CASES)
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_case_has_tests_or_a_reason(case: str) -> None:
    entry = TABLE[case]
    if isinstance(entry, Reason):
        assert re.match(r"\w[^.]{40,}$", entry.text), f"{case}: say in a sentence why no test holds it"
        return
    assert entry
    for place in entry:
        assert place.names
        missing = set(place.names) - functions_of(TESTS / place.file)
        assert not missing, f"{case}: {place.file} has no {', '.join(sorted(missing))}"


def test_a_test_that_claims_a_case_is_in_the_table() -> None:
    for file in sorted(TESTS.rglob("test_*.py")):
        for name in functions_of(file):
            for case in cases_of(name):
                assert case in TABLE, f"{file}: {name} claims {case}, which is no case"
                listed = {(TESTS / place.file, test) for place in places(case) for test in place.names}
                assert (file, name) in listed, f"{file}: {name} claims {case}, and the table does not name it there"


def test_a_reason_has_no_test_beside_it() -> None:
    """Once there is a test for a case, its reason goes."""
    claimed = {case for file in TESTS.rglob("test_*.py") for name in functions_of(file) for case in cases_of(name)}
    assert not claimed & {case for case, entry in TABLE.items() if isinstance(entry, Reason)}


def test_the_name_of_a_test_claims_its_cases() -> None:
    assert cases_of("test_N16_N17_small_targets_are_split") == {"N16", "N17"}
    assert cases_of("test_XOR_is_learnt") == set()
