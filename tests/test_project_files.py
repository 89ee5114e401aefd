"""What stands beside the package agrees with it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture(scope="module")
def jobs():
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]


def commands_of(job):
    """Return what a job runs, after it has got the clone and Python."""
    checkout, python, *steps = job["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    assert python["uses"].startswith("actions/setup-python@")
    return [step["run"] for step in steps]


def test_the_citation_is_of_this_package(citation):
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": "The skprivacy developers"}]
    assert citation["message"]


def test_the_citation_names_the_paper_of_the_readme(citation):
    (paper,) = citation["references"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    names = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    assert f'{" and ".join(names)}, "{paper["title"]}"' in readme


def test_every_extra_is_on_the_page_about_installing():
    page = (ROOT / "docs" / "installation.rst").read_text()
    listed = re.findall(r"^   \* - ``(\w+)``$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(PROJECT["optional-dependencies"])
    assert f"You need Python {PROJECT['requires-python'][2:]} or newer" in page


def test_every_python_that_is_promised_is_tested(jobs):
    tested = jobs["ci"]["strategy"]["matrix"]["python"]
    assert jobs["ci"]["steps"][1]["with"] == {"python-version": "${{ matrix.python }}"}
    named = [re.fullmatch(r".* :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"]]
    assert tested == [found[1] for found in named if found]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    minors = [int(version.split(".")[1]) for version in tested]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_the_workflow_runs_what_has_to_pass(jobs):
    assert commands_of(jobs["ci"]) == ["bash .ci/run"]
    assert commands_of(jobs["lint"])[-1] == "bash .ci/lint"
    assert 'run test "bash .ci/lint"' in (ROOT / ".ci/run").read_text().splitlines()


def test_the_lowest_versions_are_tested_with_the_lowest_python(jobs):
    assert commands_of(jobs["lowest"]) == ["bash .ci/lowest"]
    version = jobs["lowest"]["steps"][1]["with"]["python-version"]
    assert PROJECT["requires-python"] == f">={version}"


def test_other_systems_run_the_main_command_and_tests_that_exist(jobs):
    assert jobs["systems"]["strategy"]["matrix"]["system"] == ["windows-latest", "macos-latest"]
    main, _, tests = commands_of(jobs["systems"])
    assert f"```sh\n{main}\n```" in (ROOT / "README.md").read_text()
    runner, *paths = tests.split(" tests/")
    assert runner == "python3 -m pytest"
    assert all((ROOT / "tests" / path).exists() for path in paths)


def test_the_page_about_contributing_is_the_file_at_the_root():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert (
        (ROOT / "docs/contributing.rst")
        .read_text()
        .startswith(".. include:: ../CONTRIBUTING.md\n")
    )
    assert not re.search(r"^#|^```|\]\(", text, flags=re.MULTILINE)  # Markdown and reST at once
    named = re.findall(r"``((?:docs|tests|\.ci|\.github)/[\w./]+|[A-Z_]+\.md)``", text)
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]
