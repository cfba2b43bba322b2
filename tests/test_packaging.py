"""Every way to install gputree finds the same kernels, and importing it is quiet.

No network: each virtualenv sees the packages of this one through a .pth file, and nothing is resolved.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("pyproject.toml", "README.md", "LICENSE", "gputree", "kernels")
SHOW_KERNEL = "from gputree.backends.source import read_kernel; print(read_kernel('common.cuh'), end='')"
QUIET = """
import sys
sys.modules["cupy"] = sys.modules["numba"] = None  # as if they were not installed
import gputree
heavy = {"sklearn.ensemble", "sklearn.tree", "matplotlib", "pandas", "polars", "pyarrow", "dask", "onnx", "treelite"}
print(gputree.__version__, *sorted(heavy & set(sys.modules)))
"""


def run(*command: object, cwd: Path, **environment: str) -> str:
    # No PYTHONPATH from outside: a test must see what it installed, and from another folder than the checkout.
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (command[1] == "-c" and done.stderr), done.stderr
    return done.stdout


def make_venv(folder: Path) -> Path:
    """Return the python of a new virtualenv that falls back on the packages of this one."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    (Path(site) / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python: Path, *what: object) -> Path:
    # --ignore-installed: a gputree in the packages fallen back on must neither satisfy pip nor be removed by it
    flags = ("--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, "install", *flags, *what, cwd=python.parent)
    return python


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the repository that tests may edit."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in SHIPPED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(checkout, tmp_path_factory):
    """A folder with the wheel built from the checkout, the sdist, and under `again/` the wheel built from the sdist."""
    out = tmp_path_factory.mktemp("built")
    build = (sys.executable, "-m", "build", "--no-isolation")
    run(*build, "--wheel", "--outdir", out, checkout, cwd=out)
    run(*build, "--outdir", out / "again", checkout, cwd=out)  # without a flag the wheel is built from the sdist
    return out


@pytest.fixture(scope="module")
def kernel():
    from gputree.backends.source import read_kernel

    return read_kernel("common.cuh")


@pytest.mark.parametrize("where", ["", "again"])
def test_a_wheel_carries_the_kernels_and_runs(built, kernel, tmp_path, where):
    (wheel,) = (built / where).glob("*.whl")
    python = install(make_venv(tmp_path / "venv"), wheel)
    assert run(python, "-c", SHOW_KERNEL, cwd=tmp_path) == kernel
    found = run(python, "-c", "import gputree.backends.source as s; print(s.kernels_folder())", cwd=tmp_path)
    assert Path(found.strip()).is_relative_to(tmp_path / "venv")
    assert (python.parent / "gputree").is_file()  # the console script
    package = Path(found.strip()).parent
    assert (package / "py.typed").is_file()
    shipped = {path.relative_to(ROOT / "gputree") for path in data_files(ROOT / "gputree")}
    assert shipped == {path.relative_to(package) for path in data_files(package)}


def data_files(package: Path) -> list[Path]:
    compiled = (".pyc", ".nbi", ".nbc")
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix not in compiled]
    return [path for path in files if path.relative_to(package).parts[0] != "kernels"]


def test_an_editable_install_follows_edits(checkout, tmp_path):
    copy = shutil.copytree(checkout, tmp_path / "copy")
    python = install(make_venv(tmp_path / "venv"), "--editable", copy)
    assert_follows_edits(copy, lambda: run(python, "-c", SHOW_KERNEL, cwd=tmp_path))


def test_a_bare_checkout_needs_no_install(checkout, tmp_path):
    copy = shutil.copytree(checkout, tmp_path / "copy")
    python = make_venv(tmp_path / "venv")
    assert_follows_edits(copy, lambda: run(python, "-c", SHOW_KERNEL, cwd=tmp_path, PYTHONPATH=str(copy)))


def assert_follows_edits(checkout, show):
    header = checkout / "kernels" / "common.cuh"
    assert show().endswith(header.read_text().splitlines()[-1] + "\n")
    with header.open("a") as file:
        file.write("// edited\n")
    assert show().endswith("// edited\n")


def test_import_is_quick_and_quiet_without_cupy_and_numba(tmp_path):
    from gputree import __version__

    out = run(sys.executable, "-W", "error", "-c", QUIET, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert out == f"{__version__}\n"
