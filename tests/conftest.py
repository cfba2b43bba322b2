import os
from collections.abc import Iterator

import hypothesis
import pytest

# The same examples in every run and on every machine, however slow: a red test can be run again.
hypothesis.settings.register_profile("gputree", deadline=None, derandomize=True)
hypothesis.settings.load_profile("gputree")

EXPECTED = "expected:"  # a skip whose reason starts so is allowed in CI


def unexpected_skips(config: pytest.Config) -> Iterator[str]:
    # xdist's workers have no terminal reporter: only the controller, which sees every report, judges.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or os.environ.get("CI") != "true":
        return
    for report in reporter.stats.get("skipped", []):
        # longrepr is (path, line, "Skipped: reason"), or a plain string from some plugins
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = text.removeprefix("Skipped: ")
        if not reason.startswith(EXPECTED):
            yield f"{report.nodeid}: {reason}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and any(unexpected_skips(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for skip in unexpected_skips(config):
        terminalreporter.write_line(f"UNEXPECTED SKIP {skip} (install what it needs, or start its reason {EXPECTED!r})")
