"""What the documentation and the configuration say about the house is so."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md")


def makefile_targets(root: Path) -> dict[str, str]:
    """Target -> its line in `make help`, empty for an inner target."""
    text = (root / "Makefile").read_text()
    found = {
        name: "" for line in re.findall(r"^\.PHONY: (.*)$", text, re.M) for name in line.split()
    }
    return found | dict(re.findall(r"^([a-z][a-z-]*):[^#\n]*## (.*)$", text, re.M))


def test_every_make_target_that_is_named_exists(root: Path) -> None:
    targets = makefile_targets(root)
    for page in (path for pattern in PAGES for path in root.glob(pattern)):
        named = re.findall(r"`make ([a-z-]+)|^make ([a-z-]+) *(?:#|$)", page.read_text(), re.M)
        unknown = [a or b for a, b in named if (a or b) not in targets]
        assert not unknown, f"{page.name} names make {unknown}"


def test_the_targets_of_the_manual_are_described(root: Path) -> None:
    described = {name for name, line in makefile_targets(root).items() if line}
    assert described >= {"demo", "test", "test-all", "test-san", "test-browser", "test-long"}
    assert described >= {"test-vm", "test-vm-boots"}
    assert described >= {"setup", "lint", "format", "docs", "perf", "lock", "clean"}


def test_requirements_repeat_what_the_package_declares(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wanted = set(project["project"]["dependencies"])
    wanted |= set(project["build-system"]["requires"])
    for extra in project["project"]["optional-dependencies"].values():
        wanted |= {line for line in extra if not line.startswith("atoll")}
    for group in project["dependency-groups"].values():
        wanted |= set(group)
    lines = (root / "requirements.in").read_text().splitlines()
    assert wanted <= {line.strip() for line in lines}


def test_every_requirement_is_on_the_page_of_dependencies(root: Path) -> None:
    page = (root / "docs/dependencies.md").read_text()
    words = set(re.findall(r"[\w.+-]+", page))
    for line in (root / "requirements.in").read_text().splitlines():
        name = re.split(r"[<>=\s#\[]", line)[0]
        assert not name or name in words, f"docs/dependencies.md does not name {name}"
    makefile = (root / "Makefile").read_text().replace("\\\n", " ")
    for _, packages in re.findall(r"^(SYSTEM|BROWSER)_PACKAGES := (.*)$", makefile, re.M):
        for package in packages.split():
            assert package in words, f"docs/dependencies.md does not name {package}"


def test_what_make_and_ci_start_is_executable(root: Path) -> None:
    for name in (".ci/run", "tools/system_packages"):
        assert os.access(root / name, os.X_OK), name
