"""A plugin of pytest: one line for each test, `pass NAME`, `fail NAME` or `skip NAME`, to the file
that OUTCOMES names. What fails before or behind a test has the test's name as well."""

import os
import re

_order = ["skip", "pass", "fail"]
_outcomes = {}


def pytest_runtest_logreport(report):
    # SQLAlchemy puts the driver and the server's version behind the class.
    name = re.sub(r"_mysql\+\w+?_\d[\d_]*(?=::)", "", report.nodeid)
    name = re.sub(r"\s", " ", name)
    outcome = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
    if hasattr(report, "wasxfail"):
        outcome = "pass" if report.skipped else "fail"
    elif report.when != "call" and outcome == "pass":
        return
    before = _outcomes.get(name, "skip")
    _outcomes[name] = max(before, outcome, key=_order.index)


def pytest_sessionfinish():
    with open(os.environ["OUTCOMES"], "w", encoding="utf-8") as file:
        for name, outcome in _outcomes.items():
            file.write(f"{outcome} {name}\n")
