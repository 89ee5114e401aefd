"""A transformer as a command and as a script: both lead back to the same transformer."""

import json
import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skprivacy import PrivacyFunnelTransformer, TreeCells
from skprivacy.cli.arguments import parser
from skprivacy.cli.inputs import counting_options, transformer_for
from skprivacy.measures import AlphaLift
from skprivacy.recipes import command, script

# Headers of text files cannot have NUL; the rest can be anything.
NAMES = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), min_size=1)
COLUMNS = st.lists(NAMES, min_size=4, max_size=4, unique=True)


def parsed(text):
    """Return the options of a command, and the transformer that it makes."""
    options = parser().parse_args(shlex.split(text)[1:])
    names = [*options.sensitive, *options.columns, *(options.beside or ()), options.target_column]
    asked = ("epsilon", "output", "made_up", "release_target", "handle_unknown", "remainder")
    more = {name: getattr(options, name) for name in asked}
    return options, transformer_for(options, names, **more)


@given(COLUMNS, st.floats(1e-6, 10), st.booleans(), st.integers(2, 30))
def test_a_command_leads_back_to_its_transformer(names, epsilon, is_sure, bins):
    s, x, z, target = names
    funnel = PrivacyFunnelTransformer(
        epsilon,
        sensitive=[s],
        columns=[x],
        beside=[z],
        confidence=0.95 if is_sure else None,
        utility="target",
        n_bins={x: bins},
        ordered={x: ["low", "a, b", 'c"d']},
        max_categories=7,
        release_target=True,
    )
    text = command(funnel, "-in.csv", "out 1.csv", target=target, header=True)
    options, made = parsed(text)
    assert (options.source, options.target, options.header) == ("-in.csv", "out 1.csv", True)
    assert counting_options(options) == {"target": target, "apart": []}
    assert made.get_params(deep=False) == funnel.get_params(deep=False)


@pytest.mark.parametrize(
    "parameters",
    [
        {"measure": "l1", "scope": "average", "solver": "optimal", "utility": "guess"},
        {"epsilon": {"s": 0.1, "t": 0.2}, "sensitive": ["s", "t"]},
        {"epsilon": {("s", "t"): 0.1}, "sensitive": ["s", "t"]},
        {"solver_options": {"tol": 0.001, "max_time": 60}, "solver": "optimal"},
        {"n_bins": {"x": None}, "alphabet": "cells"},
        {"n_bins": {"x": [-np.inf, 1, 2.5, np.inf]}},
        {"remainder": "passthrough", "min_frequency": 3, "smoothing": 1.0, "max_outputs": 5},
        {"made_up": "for_one_model", "ordered": {"x": ["< 18", "18=a", "<b>"]}},
        {"remainder": ["z, y"], "min_frequency": 0.1, "output": "symbol", "confidence": 0.99},
    ],
)
def test_every_option_leads_back(parameters):
    given = {"sensitive": ["s"], "columns": ["x"], "utility": "distortion"} | parameters
    funnel = PrivacyFunnelTransformer(**given)
    _, made = parsed(command(funnel, "in.csv", "out.csv"))
    found, expected = made.get_params(deep=False), funnel.get_params(deep=False)
    if ("s", "t") in (budgets := given.get("epsilon", ())):  # by its name, until the file is read
        expected["epsilon"] = {"s+t": budgets["s", "t"]}
    if isinstance(expected["n_bins"], int):  # a command names the columns
        expected["n_bins"] = {"x": expected["n_bins"]}
    assert found == expected


@pytest.mark.parametrize(
    "parameters",
    [
        {"random_state": 0},
        {"n_bins": 3},
        {"measure": AlphaLift(alpha=3)},
        {"alphabet": TreeCells(max_cells=9)},
        {"columns": lambda table: ["x"]},
        {"ordered": {"x": [True, False]}},
        {"sensitive": None},
    ],
)
def test_what_a_command_cannot_say_is_an_error(parameters):
    funnel = PrivacyFunnelTransformer(**({"sensitive": ["s"], "columns": ["x"]} | parameters))
    with pytest.raises(ValueError, match=f"A command cannot say {next(iter(parameters))}="):
        command(funnel, "in.csv", "out.csv")


@given(COLUMNS)
def test_a_script_is_python_with_the_same_parameters(names):
    s, x, purpose, file = names
    funnel = PrivacyFunnelTransformer(0.1, sensitive=[s], columns=[x], ordered={x: ["a", "b"]})
    more = {"report": "r.html", "save_mechanism": "m.json", "purpose": purpose}
    text = script(funnel, file, "out.csv", header=False, **more)
    made = text.partition("funnel = ")[2].partition("\nfit_file")[0]
    again = eval(made, {"PrivacyFunnelTransformer": PrivacyFunnelTransformer})
    assert again.get_params(deep=False) == funnel.get_params(deep=False)
    compile(text, "script", "exec")
    assert json.dumps(file) == json.dumps(
        eval(text.partition("transform_file(funnel, ")[2].rpartition(", 'out.csv'")[0])
    )
