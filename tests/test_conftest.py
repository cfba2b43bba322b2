import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = {
    "call": "import pytest\ndef test_it():\n    pytest.skip({reason!r})\n",
    "mark": "import pytest\n@pytest.mark.skip(reason={reason!r})\ndef test_it():\n    pass\n",
    "module": "import pytest\npytest.skip({reason!r}, allow_module_level=True)\n",
}


def run_suite(folder: Path, *, ci: bool, workers: int, reason: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_pass.py").write_text("def test_pass():\n    pass\n")
    for kind, text in SKIPS.items():
        (folder / f"test_{kind}.py").write_text(text.format(reason=reason))
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", f"-n{workers}", "-p", "no:cacheprovider"],
        cwd=folder,
        env=outer | ({"CI": "true"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_ci_fails_on_unexpected_skips_and_names_them(tmp_path, workers):
    done = run_suite(tmp_path, ci=True, workers=workers, reason="no such tool")
    assert done.returncode == 1, done.stdout + done.stderr
    for kind in SKIPS:
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"UNEXPECTED SKIP test_{kind}.py")]
        assert "no such tool" in line


@pytest.mark.parametrize(("ci", "reason"), [(True, "expected: another system"), (False, "no such tool")])
def test_expected_skips_and_runs_outside_ci_pass(tmp_path, ci, reason):
    done = run_suite(tmp_path, ci=ci, workers=1, reason=reason)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "UNEXPECTED" not in done.stdout
