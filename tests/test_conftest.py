import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPS = {
    "call": "import pytest\ndef test_it():\n    pytest.skip({reason!r})\n",
    "mark": "import pytest\n@pytest.mark.skip(reason={reason!r})\ndef test_it():\n    pass\n",
    "module": "import pytest\npytest.skip({reason!r}, allow_module_level=True)\n",
}
GPU = "import pytest\n@pytest.mark.gpu\n@pytest.mark.parametrize('i', range(50))\ndef test_it(i):\n    pass\n"
CARD = "from types import SimpleNamespace as Card\nreport = lambda: [Card(available={available}, reason='no driver')]\n"


def run_pytest(folder: Path, workers: int, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    (folder / "test_pass.py").write_text("def test_pass():\n    pass\n")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", f"-n{workers}", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=outer | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_skips(folder: Path, reasons: list[str], workers: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """A suite of a test that passes and of one skip of every kind."""
    for (kind, text), reason in zip(SKIPS.items(), reasons, strict=True):
        (folder / f"test_{kind}.py").write_text(text.format(reason=reason))
    return run_pytest(folder, workers, **environment)


@pytest.mark.parametrize("workers", [0, 1])
def test_ci_fails_on_unexpected_skips_and_tells_each_reason_once(tmp_path, workers):
    done = run_skips(tmp_path, ["no such tool", "other system", "no such tool"], workers, CI="true")
    assert done.returncode == 1, done.stdout + done.stderr
    *_, first, second, last = done.stdout.splitlines()
    tools, system = sorted((first, second), key=lambda line: "other system" in line)
    assert tools.startswith("UNEXPECTED SKIP, 2 x (first test_")
    assert tools.endswith(": no such tool")
    assert system == "UNEXPECTED SKIP, 1 x (first test_mark.py::test_it): other system"
    assert last.startswith("FAILED: skips in CI that nobody expected: 3, listed above; ")


@pytest.mark.parametrize(("ci", "reason"), [("true", "expected: another system"), ("", "no such tool")])
def test_expected_skips_and_runs_outside_ci_pass(tmp_path, ci, reason):
    done = run_skips(tmp_path, [reason] * 3, 1, CI=ci)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "UNEXPECTED" not in done.stdout


def stand_in(folder: Path, available: bool) -> None:
    """A package that tells of a card."""
    (folder / "gputree").mkdir()
    (folder / "gputree" / "__init__.py").touch()
    (folder / "gputree" / "backends.py").write_text(CARD.format(available=available))


@pytest.mark.parametrize("workers", [0, 2])
def test_tests_of_a_card_end_at_once_where_there_is_none(tmp_path, workers):
    (tmp_path / "test_gpu.py").write_text(GPU)
    stand_in(tmp_path, available=False)
    done = run_pytest(tmp_path, workers, "-m", "gpu", PYTHONPATH=str(tmp_path))
    assert done.returncode not in (0, 1, 3, 5), done.stdout + done.stderr  # a failure, an internal error, no tests
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "needs a card" in line]
    assert "-m gpu needs a card: no driver" in line
    assert len(done.stdout.splitlines()) < 15
    assert "passed" not in done.stdout


def test_the_library_says_why_there_is_no_card(tmp_path):
    (tmp_path / "test_gpu.py").write_text(GPU)
    done = run_pytest(tmp_path, 0, "-m", "gpu", PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 4, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "needs a card" in line]
    assert line.partition("needs a card: ")[2].strip(" !")


@pytest.mark.parametrize(("available", "options", "passed"), [(True, ["-m", "gpu"], 50), (False, ["-m", "not gpu"], 1)])
def test_tests_run_where_there_is_a_card_or_none_is_needed(tmp_path, available, options, passed):
    (tmp_path / "test_gpu.py").write_text(GPU)
    stand_in(tmp_path, available)
    done = run_pytest(tmp_path, 0, *options, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout
