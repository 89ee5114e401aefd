"""The map of the package is true: its order, its rooms, and who may know what."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skprivacy

PACKAGE = Path(skprivacy.__file__).parent
MAP = (Path(__file__).parents[1] / "docs" / "architecture.rst").read_text()
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text())
    for path in PACKAGE.rglob("*.py")
}


def mapped():
    """Yield the modules of the map in their order, the door of a room after what is in it."""
    yield "__init__.py"  # which imports nothing before it is asked for
    room = ""
    for line in MAP.partition(".. code-block:: text")[2].partition("\nRules")[0].splitlines():
        found = re.match(r"   ( *)(\w+/|\w+\.py(?:, \w+\.py)*) +\w", line)
        if not found:
            continue
        indent, names = len(found[1]), found[2]
        if room and not indent:
            yield f"{room}__init__.py"
            room = ""
        if names.endswith("/"):
            room = names
        else:
            yield from (f"{room if indent else ''}{name}" for name in names.split(", "))


def imports_of(name):
    """Yield the modules of the package that a module imports, also for type checkers only."""
    folder = PACKAGE / name
    for node in ast.walk(MODULES[name]):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        place = folder.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        place = place.relative_to(PACKAGE).as_posix()
        for alias in node.names:
            room = "" if place == "." else f"{place}/"
            places = [f"{room}{alias.name}.py", f"{room}{alias.name}/__init__.py", f"{place}.py"]
            yield next((p for p in places if p in MODULES), f"{room}__init__.py")


ORDER = list(mapped())
GRAPH = {name: set(imports_of(name)) for name in MODULES if name != "__init__.py"}


def test_every_module_is_on_the_map_once():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_a_module_imports_what_stands_above_it(name):
    below = [other for other in GRAPH[name] if ORDER.index(other) >= ORDER.index(name)]
    assert not below


def test_imports_have_no_cycle():
    list(TopologicalSorter(GRAPH).static_order())  # or a CycleError


def test_releasing_knows_nothing_of_fitting():
    for name in GRAPH:
        if name.startswith("releasing/"):
            assert not [other for other in GRAPH[name] if other.startswith("fitting/")]


ESTIMATOR = ("fitting/fitted_estimator.py", "transformer.py")


def privates_of_the_estimator():
    classes = [
        node for name in ESTIMATOR for node in MODULES[name].body if isinstance(node, ast.ClassDef)
    ]
    for node in (part for each in classes for part in ast.walk(each) if part is not each):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield node.attr


def test_only_the_estimator_names_its_private_attributes():
    privates = {name for name in privates_of_the_estimator() if re.match(r"_[a-z]", name)}
    assert {"_fitted", "_batches"} <= privates
    for name, tree in MODULES.items():
        if name in ESTIMATOR:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self":
                assert node.attr not in privates, (name, node.lineno)


@cache
def libraries_of(name):
    """Return the libraries of others that a module imports."""
    found = set()
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    return found


def importers_of(library):
    """Return the modules that import a library of others."""
    return {name for name in MODULES if library in libraries_of(name)}


def claims():
    """Yield what the map and the modules say of third parties: who imports which alone."""
    room = ""
    for line in MAP.splitlines():
        if found := re.match(r"   (\w+/) ", line):
            room = found[1]
        if found := re.match(r"     (\w+\.py).*the only import of (\w+)", line):
            yield f"{room}{found[1]}", found[2]
    for name, tree in MODULES.items():
        said = ast.get_docstring(tree) or ""
        if found := re.search(r"the\s+only\s+import\s+of\s+(\w+)", said):
            yield name, found[1]


def test_who_is_said_to_import_a_library_alone_does():
    said = set(claims())
    libraries = {
        "cdd",
        "clarabel",
        "cryptography",
        "dask",
        "highspy",
        "matplotlib",
        "narwhals",
        "polars",
    }
    assert {library for _, library in said} == libraries | {"pyspark", "skops", "starlette"}
    for name, library in said:
        assert importers_of(library) == {name}


def test_pyarrow_is_imported_where_arrow_comes_from_files_or_from_spark():
    assert importers_of("pyarrow") == {"engines/parquet_files.py", "engines/spark_frames.py"}


def test_no_private_module_of_a_third_party_is_imported():
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
                assert not re.search(r"(^|\.)_", node.module), (name, node.module)


def test_tests_are_in_the_rooms_of_what_they_test():
    rooms = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir()}
    assert {room for room in rooms if not room.startswith("_")} == {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }


def test_no_test_patches_a_private_name():
    for path in Path(__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setattr"):
                named = [part.value for part in node.args[:2] if isinstance(part, ast.Constant)]
                assert not [name for name in named if re.search(r"(^|\.)_", name)], path
