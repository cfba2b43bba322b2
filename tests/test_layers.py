"""Who may import whom, and the size limits of the house, read from the source text: see `layer` and `LIMITS`."""

import ast
import graphlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("core", "backends", "engine", "learners")  # each may use those before it
# may use every layer and each other; no layer uses them
TOP = (
    *("inspect", "io", "storage", "cli", "readers", "report"),
    *("datasets", "generators", "table", "impurity", "pruning", "stopping", "examples", "model_selection"),
)
CALLS_UP = "learners.looks"  # methods of estimators whose work is done in `inspect`, imported when they are called
REQUIRED = {"numpy", "scipy", "joblib", "sklearn", "narwhals"}  # always installed: all others load inside a function
HOMES = {"cupy": {"backends.cuda", "backends.source"}, "numba": {"backends.compiled", "backends.jit"}}
BODY_LINES, FILE_LINES, PARAMETERS = 40, 400, 6
SCIKIT_LEARN = {"export_text", "export_graphviz", "plot_tree"}  # functions with the parameters of scikit-learn's

Files = dict[str, str]  # path from the root -> text


@dataclass(frozen=True)
class Import:
    path: str
    line: int
    source: str  # dotted, without "gputree.": "core.forest"; "" is gputree/__init__.py
    target: str  # of ours alike; of others the top package
    ours: bool
    lazy: bool  # inside a function
    typing: bool  # under TYPE_CHECKING: never runs


def read_files() -> Files:
    """Return the text of every file that the rules are about."""
    paths = [*ROOT.glob("gputree/**/*.py"), *ROOT.glob("kernels/*.cu*")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def python_trees(files: Files) -> Iterator[tuple[str, ast.Module]]:
    yield from ((path, ast.parse(text, path)) for path, text in files.items() if path.endswith(".py"))


def module_name(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts[1:]).removesuffix("__init__").removesuffix(".")


def imports(files: Files) -> list[Import]:
    modules = {module_name(path) for path in files if path.endswith(".py")}
    return [found for path, tree in python_trees(files) for found in imports_of(path, tree, modules)]


def imports_of(path: str, tree: ast.Module, modules: set[str]) -> Iterator[Import]:
    for node, lazy, typing in import_nodes(tree, lazy=False, typing=False):
        for name in sorted(imported_names(node, path)):
            head, _, rest = name.partition(".")
            ours = head == "gputree"
            # the last part of `from gputree.core.forest import Forest` is no module: drop it
            target = head if not ours else rest if rest in modules else rest.rpartition(".")[0]
            yield Import(path, node.lineno, module_name(path), target, ours, lazy, typing)


def import_nodes(
    node: ast.AST, *, lazy: bool, typing: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, lazy, typing
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    typing = typing or (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"))
    for child in ast.iter_child_nodes(node):
        yield from import_nodes(child, lazy=lazy, typing=typing)


def imported_names(node: ast.Import | ast.ImportFrom, path: str) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    package = Path(path).parent.parts
    above = package[: len(package) - node.level + 1] if node.level else ()
    return {".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names}


def layer(module: str) -> str:
    """Return the layer of a module: one of LAYERS, a name of TOP, or "" for gputree itself, which sees everything."""
    head = module.partition(".")[0]
    return "" if head == "__main__" else head


def may_use_ours(found: Import) -> bool:
    source, target = layer(found.source), layer(found.target)
    if source == "" or source in TOP:
        return True  # the package, and what stands on top of the layers
    if found.source == CALLS_UP and found.lazy:
        return target in (*LAYERS, "inspect")
    if source == "engine" and target == "backends":
        return found.target == "backends.protocol"
    return target in LAYERS and LAYERS.index(target) <= LAYERS.index(source)


def may_use_other(found: Import) -> bool:
    source = layer(found.source)
    if found.target in sys.stdlib_module_names:
        return True
    if source == "core":
        return found.target == "numpy"
    if found.target in HOMES:
        return found.source in HOMES[found.target] and (found.lazy or found.typing)
    if found.target in {"sklearn", "narwhals"}:
        return source in {"", "learners", *TOP}
    # what is optional must not be needed by `import gputree`; an example is a program of its own
    return found.target in REQUIRED or found.lazy or found.typing or source == "examples"


def forbidden_imports(files: Files) -> list[str]:
    bad = [found for found in imports(files) if not (may_use_ours if found.ours else may_use_other)(found)]
    return [f"{f.path}:{f.line}: {f.source or 'gputree'} must not import {f.target or 'gputree'}" for f in bad]


def unknown_modules(files: Files) -> list[str]:
    known = {"", *LAYERS, *TOP}
    bad = sorted({path for path in files if path.endswith(".py") and layer(module_name(path)) not in known})
    return [f"{path}: belongs to no layer; put it in one of {LAYERS + TOP}" for path in bad]


def import_cycles(files: Files) -> list[str]:
    graph: dict[str, set[str]] = {}
    for found in imports(files):
        # `from . import x`, where x is no module, has its own package as target
        if found.ours and not found.lazy and not found.typing and found.target != found.source:
            graph.setdefault(found.source, set()).add(found.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(name or "gputree" for name in reversed(error.args[1]))]
    return []


def functions(files: Files) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in python_trees(files):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def long_bodies(files: Files) -> list[str]:
    bad = [(path, f, body_lines(f)) for path, f in functions(files) if body_lines(f) > BODY_LINES]
    return [f"{path}:{f.lineno}: {f.name} has a body of {n} lines; at most {BODY_LINES}" for path, f, n in bad]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 1 + (function.end_lineno or 0) - body[0].lineno if body else 0


def long_files(files: Files) -> list[str]:
    sizes = {path: len(text.splitlines()) for path, text in files.items()}
    return [f"{path}: {n} lines; at most {FILE_LINES}" for path, n in sizes.items() if n > FILE_LINES]


def long_signatures(files: Files) -> list[str]:
    own = [(path, f) for path, f in functions(files) if f.name not in SCIKIT_LEARN]
    bad = [(path, f, parameters(f)) for path, f in own if parameters(f) > PARAMETERS]
    bad = [(path, f, n) for path, f, n in bad if not (f.name == "__init__" and path.startswith("gputree/learners/"))]
    return [f"{path}:{f.lineno}: {f.name} has {n} parameters; at most {PARAMETERS}" for path, f, n in bad]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    spec = function.args
    names = [a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]]
    return len(names) - (names[:1] in (["self"], ["cls"])) + (spec.vararg is not None) + (spec.kwarg is not None)


Rule = Callable[[Files], list[str]]
RULES: list[Rule] = [forbidden_imports, unknown_modules, import_cycles, long_bodies, long_files, long_signatures]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule):
    files = read_files()
    assert "gputree/__init__.py" in files
    complaints = rule(files)
    assert not complaints, "\n".join(complaints)


# The rules themselves: text that must be refused, or allowed, in a house of these other modules.
HOUSE = dict.fromkeys(
    [
        *("__init__", "io", "core/__init__", "core/forest", "backends/__init__", "backends/protocol"),
        *("backends/oracle", "engine/__init__", "engine/grow", "learners/__init__", "learners/base"),
    ],
    "",
)


def house(name: str, text: str) -> Files:
    return {f"gputree/{module}.py": body for module, body in (HOUSE | {name: dedent(text)}).items()}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("core/x", "from gputree.backends import protocol"),
        ("core/x", "def f():\n    import gputree.engine.grow"),
        ("core/x", "from gputree import io"),
        ("core/x", "from gputree import __version__"),
        ("core/x", "import scipy.special"),
        ("core/x", "import narwhals"),
        ("backends/x", "from ..engine.grow import grow"),
        ("backends/x", "import sklearn.base"),
        ("backends/x", "def f():\n    import cupy"),
        ("backends/cuda", "import cupy"),
        ("backends/jit", "from numba import njit"),
        ("backends/oracle", "def f():\n    import numba"),
        ("engine/x", "import gputree.backends"),
        ("engine/x", "from gputree.backends import oracle"),
        ("engine/x", "from gputree.learners import base"),
        ("engine/x", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gputree.learners.base import Base"),
        ("learners/x", "def f():\n    from gputree.io import save"),
        ("learners/x", "def f():\n    from gputree.inspect.text import export_text"),
        ("learners/looks", "from gputree.inspect.text import export_text"),
        ("learners/looks", "def f():\n    from gputree.io import save"),
        ("learners/x", "import pandas"),
        ("io", "import cupy"),
    ],
)
def test_an_import_against_the_rule_is_found(name, text):
    (complaint,) = forbidden_imports(house(name, text))
    assert complaint.startswith(f"gputree/{name}.py:")
    assert "must not import" in complaint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("core/x", "import math\nimport numpy as np\nfrom . import forest\nfrom gputree.core.forest import Forest"),
        ("backends/x", "from ..core import forest\nfrom .protocol import Backend"),
        ("backends/cuda", "def f():\n    import cupy"),
        ("backends/jit", "def f():\n    import numba"),
        ("engine/x", "from gputree.backends.protocol import Backend\nfrom gputree.core import forest"),
        ("learners/x", "import sklearn.base\nfrom gputree import backends, engine\ndef f():\n    import pandas"),
        ("learners/looks", "def f():\n    from gputree.inspect.text import export_text"),
        ("io", "import gputree.learners.base\nfrom gputree import __version__"),
        ("__init__", "from gputree.io import load\nfrom .learners import base"),
    ],
)
def test_an_import_within_the_rule_passes(name, text):
    assert forbidden_imports(house(name, text)) == []
    assert unknown_modules(house(name, text)) == []
    assert import_cycles(house(name, text)) == []


def test_a_cycle_is_found_unless_it_is_lazy():
    eager = house("core/a", "from gputree.core import b") | {"gputree/core/b.py": "from .a import x"}
    assert import_cycles(eager) in (["core.a -> core.b -> core.a"], ["core.b -> core.a -> core.b"])
    assert import_cycles(eager | {"gputree/core/b.py": "def f():\n    from .a import x"}) == []


def test_a_module_outside_the_layers_is_found():
    (complaint,) = unknown_modules(house("misc/x", ""))
    assert complaint.startswith("gputree/misc/x.py")


@pytest.mark.parametrize(("lines", "complaints"), [(BODY_LINES, 0), (BODY_LINES + 1, 1)])
def test_a_long_body_is_found(lines, complaints):
    docstring = '    """Say.\n\n    More.\n    """\n'
    assert len(long_bodies(house("core/x", "def f():\n" + docstring + "    pass\n" * lines))) == complaints


@pytest.mark.parametrize(("lines", "complaints"), [(FILE_LINES, 0), (FILE_LINES + 1, 1)])
@pytest.mark.parametrize("path", ["gputree/core/x.py", "kernels/x.cu"])
def test_a_long_file_is_found(path, lines, complaints):
    assert len(long_files({path: "\n" * lines})) == complaints


@pytest.mark.parametrize(
    ("name", "text", "complaints"),
    [
        ("core/x", "def f(a, b, c, d, e, f): ...", 0),
        ("core/x", "def f(a, /, b, *c, d, e, f, **g): ...", 1),
        ("core/x", "class X:\n    def f(self, a, b, c, d, e, f): ...", 0),
        ("core/x", "class X:\n    def __init__(self, a, b, c, d, e, f, g): ...", 1),
        ("learners/x", "class X:\n    def __init__(self, a, b, c, d, e, f, g): ...", 0),
        ("learners/x", "class X:\n    def fit(self, a, b, c, d, e, f, g): ...", 1),
    ],
)
def test_a_long_signature_is_found(name, text, complaints):
    assert len(long_signatures(house(name, text))) == complaints
