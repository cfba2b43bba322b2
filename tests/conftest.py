import os
from collections import defaultdict
from collections.abc import Generator

import hypothesis
import pytest

# The same examples in every run and on every machine, however slow: a red test can be run again.
hypothesis.settings.register_profile("gputree", deadline=None, derandomize=True)
hypothesis.settings.load_profile("gputree")

EXPECTED = "expected:"  # a skip whose reason starts so is allowed in CI


# ---- what tests need ----


def require_compiler() -> str:
    """The compiler that the emulator runs kernels with; without one, skip: no expected skip, so CI fails."""
    from tests.emulator.compiler import find_compiler
    from tests.emulator.errors import CompilerMissing

    try:
        return find_compiler()
    except CompilerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def compiler() -> str:
    return require_compiler()


def pytest_collection_finish(session: pytest.Session) -> None:
    """End at once where tests of a card were asked for and there is none."""
    if session.config.option.collectonly or not any(item.get_closest_marker("gpu") for item in session.items):
        return
    from gputree.backends import report

    cuda = report()[-1]
    if not cuda.available:
        message = f"-m gpu needs a card: {cuda.reason}"
        if hasattr(session.config, "workerinput"):  # xdist's controller hears of a worker's end by this alone
            session.shouldstop = message
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)


# ---- skips in CI ----


def unexpected_skips(config: pytest.Config) -> dict[str, list[str]]:
    """Tests by the reason of their skip."""
    found: dict[str, list[str]] = defaultdict(list)
    # xdist's workers have no terminal reporter: only the controller, which sees every report, judges.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or os.environ.get("CI") != "true":
        return found
    for report in reporter.stats.get("skipped", []):
        # longrepr is (path, line, "Skipped: reason"), or a plain string from some plugins
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = text.removeprefix("Skipped: ")
        if not reason.startswith(EXPECTED):
            found[reason].append(report.nodeid)
    return found


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the terminal's own, whose summary would be the last line
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    skips = unexpected_skips(session.config)
    if skips and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    result = yield
    if skips:
        write = session.config.pluginmanager.get_plugin("terminalreporter").write_line
        for reason, tests in skips.items():
            write(f"UNEXPECTED SKIP, {len(tests)} x (first {tests[0]}): {reason}")
        total = sum(map(len, skips.values()))
        remedy = f"install what they need, or start their reasons with {EXPECTED!r}"
        write(f"FAILED: skips in CI that nobody expected: {total}, listed above; {remedy}")
    return result
