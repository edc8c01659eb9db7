"""GitHub's workflows call make targets that exist, on the Python versions that pyproject.toml promises."""

import re
import tomllib

import pytest
import yaml

from tests.documentation.tools import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def jobs(workflow):
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]


def commands(job):
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_every_make_target_and_script_exists(workflow):
    said = "\n".join(commands(job) for job in jobs(workflow).values())
    assert {*re.findall(r"\bmake ([\w-]+)", said)} <= TARGETS
    scripts = re.findall(r"\bbash (\S+)", said)
    assert [name for name in scripts if not (ROOT / name).is_file()] == []
    assert "pip install" not in said, "make installs what it needs, here as everywhere"


def test_lint_tests_docs_and_wheel_are_all_run():
    said = "\n".join(commands(job) for workflow in WORKFLOWS for job in jobs(workflow).values())
    assert {*re.findall(r"\bmake ([\w-]+)", said)} >= {"lint", "test", "docs", "wheel"}


def test_the_python_versions_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]
    )
    promised = [match[1] for match in found if match]
    (tests,) = [
        job for workflow in WORKFLOWS for job in jobs(workflow).values() if "make test" in commands(job)
    ]
    assert tests["strategy"]["matrix"]["python-version"] == promised
    assert promised[0] == project["requires-python"].removeprefix(">=")
    assert tests["env"]["SARB_REQUIRE_ALL"] == "1"


def test_ci_runs_the_targets_of_the_makefile():
    said = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"^make ([\w-]+)", said, re.M) == ["lint", "test", "demo"]
    assert "bash .ci/chromium" in said and "export SARB_REQUIRE_ALL=1" in said
