"""What stands beside the package agrees with it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import skprivacy

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture(scope="module")
def job():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    return job


def test_the_citation_is_of_this_version(citation):
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["version"] == skprivacy.__version__
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


def test_every_python_that_is_promised_is_tested(job):
    tested = job["strategy"]["matrix"]["python"]
    named = [re.fullmatch(r".* :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"]]
    assert tested == [found[1] for found in named if found]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    minors = [int(version.split(".")[1]) for version in tested]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_the_workflow_runs_what_has_to_pass(job):
    assert job["steps"][-1] == {"run": "bash .ci/run"}
    assert job["steps"][-2]["with"] == {"python-version": "${{ matrix.python }}"}


def test_the_first_command_is_run_without_a_compiler():
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert 'run_bare main "${commands[0]}"' in lines
    assert 'run test "${commands[1]}"' in lines


def test_the_security_policy_says_what_counts_and_how_to_report():
    headings = re.findall(r"^## (.*)$", (ROOT / "SECURITY.md").read_text(), flags=re.MULTILINE)
    assert headings == ["What counts", "What does not", "How to report", "What to expect"]
