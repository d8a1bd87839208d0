"""What workflows and templates say agrees with the project: targets of the Makefile, Pythons, who may publish."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = (ROOT / "pyproject.toml").read_text()


def read(path: Path) -> dict[str, Any]:
    document = yaml.safe_load(path.read_text())
    assert isinstance(document, dict)
    return document


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_of_the_makefile_and_may_only_read(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job or "uses" in job for job in workflow["jobs"].values())
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {target for step in steps(workflow) for target in re.findall(r"make ([\w-]+)", step.get("run", ""))}
    assert called <= targets
    assert all("@" in step["uses"] for step in steps(workflow) if "uses" in step)
    for job in workflow["jobs"].values():
        if job.get("uses", "").startswith("./"):
            assert (ROOT / job["uses"]).is_file()


def test_the_matrix_has_the_pythons_that_are_promised() -> None:
    matrix = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert matrix == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert f'requires-python = ">={matrix[0]}"' in PROJECT


def test_only_one_job_may_publish_and_only_what_was_tested() -> None:
    jobs = {(path.stem, name): job for path in WORKFLOWS for name, job in read(path)["jobs"].items()}
    trusted = {key for key, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {("publish", "publish"), ("docs", "deploy")}
    assert jobs["publish", "publish"]["needs"] == ["test", "wheels"]
    assert jobs["publish", "test"]["needs"] == jobs["publish", "wheels"]["needs"] == "version"


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_are_forms(path: Path) -> None:
    form = read(path)
    if path.stem != "config":
        assert {"name", "description", "body"} <= set(form)
        assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_what_runs_before_a_commit_is_what_lint_runs() -> None:
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    entries = {hook["entry"] for hook in repository["hooks"]}
    assert entries == {".venv/bin/ruff format", ".venv/bin/ruff check --fix", "make lint"}
    assert {"ruff format", "ruff check"} <= set(re.findall(r"\$\(BIN\)/(ruff \w+)", (ROOT / "Makefile").read_text()))
