"""The pages name what there is, and what they name is there."""

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from scripts import changed, run_script

import skprivacy
import skprivacy.metrics
import skprivacy.solvers

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(skprivacy.__file__).parent


def reference():
    """The text of the pages in docs/api."""
    return "".join(page.read_text() for page in sorted((DOCS / "api").glob("*.rst")))


def documented_names():
    """Names that the reference documents, each with the module it is documented in."""
    module = None
    for line in reference().splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"\.\. auto(?:class|function|exception):: (\S+)", line):
            yield module, found[1]


def summarised_names():
    """Names in the tables at the top of these pages, with a sentence each."""
    return re.findall(r"^   (\w+)$", reference(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "module", [skprivacy, skprivacy.metrics, skprivacy.solvers], ids=lambda m: m.__name__
)
def test_every_public_name_is_in_the_reference(module):
    documented = {name for _, name in documented_names()}
    assert set(module.__all__) <= documented


def test_the_reference_is_about_names_that_are_there_and_once():
    documented = list(documented_names())
    assert len(set(documented)) == len(documented)
    for module, name in documented:
        __import__(module)
        assert hasattr(sys.modules[module], name), (module, name)
    assert sorted(summarised_names()) == sorted(name for _, name in documented)


def test_the_page_of_the_transformer_groups_every_parameter_once():
    page = (DOCS / "api" / "transformer.rst").read_text()
    groups = page.partition("Which parameters to set")[2].partition("The class")[0]
    parameters = set(skprivacy.PrivacyFunnelTransformer().get_params())
    named = [n for n in re.findall(r"``(\w+)(?:=[\w.]+)?``", groups) if n in parameters]
    assert sorted(named) == sorted(parameters)


def methods_of(cls):
    """Public methods of a class that this package has written, its own and inherited ones."""
    return {
        name
        for base in cls.__mro__
        if base.__module__.startswith("skprivacy")
        for name, member in vars(base).items()
        if not name.startswith("_") and inspect.isroutine(inspect.unwrap(getattr(base, name)))
        # Requests of metadata are scikit-learn's.
        if getattr(member, "__module__", "skprivacy").startswith("skprivacy")
    }


def shown_methods():
    """Classes in the reference, each with the methods that are shown there."""
    module, cls, shown = None, None, {}
    for line in reference().splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = import_module(found[1])
        elif found := re.fullmatch(r"\.\. autoclass:: (\S+)", line):
            cls = getattr(module, found[1])
            shown.setdefault(cls, set())
        elif found := re.fullmatch(r"   :members:(.*)", line):
            listed = set(re.findall(r"\w+", found[1]))
            shown[cls] |= listed or methods_of(cls) & set(vars(cls))
        elif found := re.fullmatch(r"\.\. auto(?:method|property):: (\w+)\.(\w+)", line):
            shown.setdefault(getattr(module, found[1]), set()).add(found[2])
    return shown


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for module in (skprivacy, skprivacy.metrics, skprivacy.solvers)
        for cls in (getattr(module, name) for name in module.__all__)
        if isinstance(cls, type)
    ],
    ids=lambda cls: cls.__name__,
)
def test_every_public_method_is_in_the_reference(cls):
    # There, where it is inherited from, or where what is inherited is shown.
    places = [
        methods
        for other, methods in shown_methods().items()
        if issubclass(cls, other) or issubclass(other, cls)
    ]
    assert methods_of(cls) <= set().union(*places)


def test_the_code_cites_every_correction_to_the_paper_and_no_other():
    text = (DOCS / "corrections.rst").read_text()
    listed = [int(number) for number in re.findall(r"^(\d+)\. \*\*", text, flags=re.MULTILINE)]
    assert listed == list(range(1, len(listed) + 1))
    cited = set()
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "examples").glob("*.py")]:
        source = re.sub(r"\s+#?\s*", " ", path.read_text())
        for numbers in re.findall(r"\bcorrections? (\d+(?:(?:, | and )\d+)*)", source):
            cited |= {int(number) for number in re.findall(r"\d+", numbers)}
    assert cited == set(listed)


SCRIPTS = [
    s
    for folder in ("docs/pictures", "examples", "benchmarks")
    for s in ROOT.glob(f"{folder}/*.py")
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_import_names_that_exist(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skprivacy"):
            module = import_module(node.module)
            assert not [alias.name for alias in node.names if not hasattr(module, alias.name)]


PICTURES = [p for p in sorted((DOCS / "pictures").glob("*.py")) if p.stem != "house_style"]


@pytest.mark.slow  # the documentation draws them too
@pytest.mark.parametrize("script", PICTURES, ids=lambda script: script.stem)
def test_the_pictures_are_drawn(script, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)
    if script.stem == "finite_samples":  # the page has more of the same
        script = changed(script, tmp_path, "DRAWS = 0.005, 8", "DRAWS = 0.005, 2")
    style = import_module("house_style").STYLE
    run_script(script, style=style, figure=tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").stat().st_size > 5_000


def test_the_picture_of_the_readme_can_be_drawn_anew(tmp_path):
    script, drawn = DOCS / "pictures" / "trade_off.py", tmp_path / "trade_off.png"
    run_script(script, drawn)
    committed = script.with_suffix(".png")
    assert drawn.read_bytes()[:8] == committed.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert 0.5 < drawn.stat().st_size / committed.stat().st_size < 2


def test_every_example_has_its_place_in_the_gallery():
    text = (DOCS / "gallery.rst").read_text()
    patterns = re.findall(r"\.\./examples/(\S+\.py)", text)
    shown = {path.name for pattern in patterns for path in (ROOT / "examples").glob(pattern)}
    assert shown == {p.name for p in (ROOT / "examples").glob("*.py")} - {"paper_figures.py"}


def test_nobody_is_told_to_install_from_pypi():
    pages = [ROOT / "README.md", *DOCS.rglob("*.rst"), *PACKAGE.rglob("*.py")]
    pages += (ROOT / "examples").glob("*.py")
    for page in pages:
        assert not re.search(r"pip install \W*skprivacy\b", page.read_text()), page
