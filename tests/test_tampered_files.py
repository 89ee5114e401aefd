"""Mechanism and transformer files that were damaged or edited: an error that names the place."""

import json
import re
import shutil
import time
import warnings
import zoneinfo
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from documents import (
    edited,
    mechanisms,
    people,
    sealed,
    several_secrets,
    tampered,
    transformers,
)

from skprivacy import Mechanism, PrivacyFunnelTransformer, PrivacyLeakWarning, design_mechanism
from skprivacy._json import Place, encode_label, read_document
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.utilities import Target

COUNTS = pd.DataFrame([[20, 10, 5], [10, 20, 30]], ["ill", "well"], ["low", "mid", "top"])
MECHANISM = design_mechanism(COUNTS, 0.05).to_json()


@pytest.fixture(scope="module")
def documents():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [(PrivacyFunnelTransformer, text) for text in transformers()]
    made += [(Mechanism, text) for text in several_secrets()]
    return [(Mechanism, text) for text in mechanisms()] + made


@pytest.fixture(scope="module")
def fitted():
    """Texts of a transformer with a column in bins, one of categories, and one pooled."""
    frame = people()
    frame.loc[::7, "town"] = None
    funnel = PrivacyFunnelTransformer(
        0.05, sensitive="sex", columns=["age", "town"], n_bins=3, max_categories=4
    )
    return funnel.fit(frame).to_json()


@pytest.fixture(scope="module")
def by_columns():
    """One transformer for each kind of column."""
    frame = people()
    funnel = PrivacyFunnelTransformer(0.001, sensitive="sex", n_bins=3)
    columns = ("band", "town", "since", "zone")
    return {c: funnel.set_params(columns=[c]).fit(frame).to_json() for c in columns}


def refusal(cls, text):
    """The sentence with which a text is refused, by a ValueError and nothing else."""
    with pytest.raises(ValueError, match=".") as caught:
        cls.from_json(text)
    assert type(caught.value) is ValueError
    return str(caught.value)


def outcome(call, argument):
    """What a call returns, or the error of those that are documented that it raises."""
    try:
        return call(argument)
    except (TypeError, ValueError) as error:
        return error


class TestChecksum:
    @pytest.mark.parametrize("cls", [Mechanism, PrivacyFunnelTransformer])
    def test_a_number_that_was_changed(self, cls, fitted):
        text = MECHANISM if cls is Mechanism else fitted
        content = json.loads(text)
        place = content if cls is Mechanism else content["mechanism"]
        place["secrets"][0]["epsilon"] *= 2  # a budget that the channel keeps even better
        assert re.search(
            "content of this .* does not match its checksum.* Get the original",
            refusal(cls, json.dumps(content)),
        )

    def test_any_digit_that_was_changed(self):
        for found in re.finditer(r"\d", MECHANISM):
            other = str((int(found[0]) + 1) % 10)
            text = MECHANISM[: found.start()] + other + MECHANISM[found.end() :]
            if outcome(json.loads, text) == json.loads(MECHANISM):  # a digit that no float has
                assert Mechanism.from_json(text).to_json() == MECHANISM
            else:
                assert re.search("checksum|format version|line 1", refusal(Mechanism, text))

    @pytest.mark.parametrize("indent", [None, 1, 4])
    def test_it_is_about_content_and_not_about_layout(self, indent):
        content = json.loads(MECHANISM)
        shuffled = dict(sorted(content.items(), key=lambda pair: hash(pair[0])))
        text = json.dumps(shuffled, indent=indent)
        mechanism = Mechanism.from_json(text)
        assert mechanism.to_json() == MECHANISM
        assert json.loads(mechanism.to_json(indent=indent)) == content

    def test_it_must_be_there(self):
        content = json.loads(MECHANISM)
        del content["checksum"]
        assert "malformed: checksum is missing" in refusal(Mechanism, json.dumps(content))
        for wrong in (None, 3, [], "", content):
            text = json.dumps(content | {"checksum": wrong})
            assert "checksum" in refusal(Mechanism, text)

    def test_a_file_that_was_cut(self):
        for length in range(0, len(MECHANISM), 7):
            sentence = refusal(Mechanism, MECHANISM[:length])
            assert re.search(r"not the JSON text of a mechanism: .*line 1 column \d+", sentence)


class TestVersion:
    def test_it_is_in_every_file(self, documents):
        assert {json.loads(text)["version"] for _, text in documents} == {6}

    @pytest.mark.parametrize(
        ("version", "sentence"),
        [
            (5, "has format version 5; this version of skprivacy reads version 6: write it again with to_json"),
            (7, "has format version 7; this version of skprivacy reads version 6: update skprivacy"),
            (10**30, "update skprivacy"),
            (0, "has format version 0; this version of skprivacy reads version 6."),
            (6.0, "has format version 6.0"),
            (True, "has format version true"),
            ("3", 'has format version "3"'),
            (None, "has format version null"),
            ([3], "has format version a list of 1"),
        ],
    )  # fmt: skip
    def test_others_are_refused_with_a_sentence(self, version, sentence):
        assert sentence in refusal(Mechanism, edited(MECHANISM, "version", to=version))

    def test_a_file_of_the_first_version(self):
        content = json.loads(MECHANISM) | {"version": 1}
        del content["checksum"]  # it had none
        assert "write it again" in refusal(Mechanism, json.dumps(content))


class TestTexts:
    @pytest.mark.parametrize(
        "text", ["", " ", "{", "[]", "3", "null", "\0", "\ufeff{}", "\ud800", "{'a': 1}", "nan", '"', "]" * 10**5],
        ids=lambda text: repr(text[:9]),
    )  # fmt: skip
    @pytest.mark.parametrize("cls", [Mechanism, PrivacyFunnelTransformer])
    def test_no_json_or_no_document(self, cls, text):
        assert "This is not the JSON text of a" in refusal(cls, text)

    @pytest.mark.parametrize("value", [None, 3, [], MECHANISM.encode()])
    def test_no_text(self, value):
        name = type(value).__name__
        assert f"it is not a str, but {name}" in refusal(Mechanism, value)

    @pytest.mark.parametrize("bracket", ["[", '{"a":', '{"tuple":['])
    @pytest.mark.parametrize("depth", [100, 10**5])
    def test_deep_nesting(self, bracket, depth):
        deep = MECHANISM.replace('"low"', bracket * depth, 1)
        assert re.search("More than 64 levels: line 1 column", refusal(Mechanism, deep))

    def test_brackets_in_texts_are_no_levels(self):
        joint = pd.DataFrame([[2, 1], [1, 2]], columns=["[" * 1000, '\\"' + "{[" * 1000])
        text = design_mechanism(joint, 0.1).to_json()
        assert Mechanism.from_json(text).x_labels == tuple(joint.columns)

    def test_a_text_that_does_not_end_is_read_in_linear_time(self):
        start = time.process_time()
        refusal(Mechanism, '{"a": "' + '\\"' * 10**6)
        refusal(Mechanism, "[" * 10**6)
        assert time.process_time() - start < 5

    @pytest.mark.parametrize(
        "number", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1" * 5000, "10" * 15]
    )
    def test_numbers_that_are_none(self, number):
        content = json.loads(MECHANISM)
        parsed = float(number)  # what has too many digits is infinite
        content["channel"][2][1] = int(number) if number.isdigit() and parsed < 1e300 else parsed
        before = r'("channel": \[.*?, \[.*?, \[[^,]*, )[^],]*'
        text = re.sub(before, rf"\g<1>{number}", sealed(content))
        assert "malformed: channel[2][1] must be a finite number" in refusal(Mechanism, text)

    @pytest.mark.parametrize("old", ['"solver"', '"alpha"', '"p_vx"'])
    def test_a_key_that_is_there_twice(self, old):
        target = Target([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
        joint = [[20, 10, 5], [10, 20, 30]]
        text = design_mechanism(joint, 0.1, measure="alpha_lift", utility=target).to_json()
        sentence = refusal(Mechanism, text.replace(old, f"{old}: 3, {old}", 1))
        assert f"an object has the key {old} twice" in sentence

    def test_a_label_with_a_key_that_is_there_twice(self, by_columns):
        before, types, after = by_columns["zone"].partition('"columns"')
        text = before + types + after.replace('"unit"', '"unit": "s", "unit"', 1)
        assert 'the key "unit" twice' in refusal(PrivacyFunnelTransformer, text)


BAD_LABELS = [
    float("nan"), float("inf"), 10**30, -(10**30), "\ud800", [], ["a"], {}, {"a": 1}, {"float": "1.5"},
    {"float": "inf", "more": 1}, {"missing": "?"}, {"tuple": "ab"}, {"tuple": [10**30]},
    {"timestamp": "now", "unit": "ns", "tz": None},
    {"timestamp": "2024-13-01T00:00:00", "unit": "ns", "tz": None},
    {"timestamp": "2024-01-01", "unit": "ns", "tz": None},
    {"timestamp": "9999-01-01T00:00:00", "unit": "ns", "tz": None},
    {"timestamp": "2024-01-01T00:00:00\0", "unit": "ns", "tz": None},
    {"timestamp": "2024-01-01T00:00:00", "unit": "D", "tz": None},
    {"timestamp": "2024-01-01T00:00:00", "unit": [], "tz": None},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": "Mars/North"},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": "Europe"},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": "../../etc/localtime"},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": "tzlocal()"},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": "a\0"},
    {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": 3},
    {"timestamp": 3, "unit": "ns", "tz": None}, {"timestamp": "2024-01-01T00:00:00", "unit": "ns"},
    {"timedelta": "1T", "unit": "ns"}, {"timedelta": "P99999999999DT0H0M0S", "unit": "ns"},
    {"date": "20240101"}, {"date": "2024-02-30"}, {"date": None},
    {"interval": [2, 1], "closed": "left"}, {"interval": ["a", "b"], "closed": "left"},
    {"interval": [1, 2], "closed": "?"}, {"interval": [1], "closed": "left"},
]  # fmt: skip


class TestLabels:
    @pytest.mark.parametrize("label", BAD_LABELS, ids=str)
    def test_what_is_none(self, label, by_columns):
        assert "malformed: x_labels[1] must be" in refusal(
            Mechanism, edited(MECHANISM, "x_labels", 1, to=label)
        )
        text = edited(by_columns["town"], "columns", 0, "values", 3, to=label)
        assert "malformed: columns[0].values[3] must be" in refusal(PrivacyFunnelTransformer, text)

    def test_a_time_zone_is_not_read_from_a_file_of_the_attackers_choice(self, tmp_path):
        for folder in zoneinfo.TZPATH:
            if (source := Path(folder) / "Asia/Tokyo").exists():
                shutil.copy(source, tmp_path / "zone")
        zone = f"dateutil/{tmp_path}/zone"
        moment = {"timestamp": "2024-01-01T00:00:00", "unit": "ns", "tz": zone}
        assert "x_labels[0]" in refusal(Mechanism, edited(MECHANISM, "x_labels", 0, to=moment))

    @pytest.mark.parametrize("label", [2**64, -(2**63) - 1, "\ud800"])
    def test_what_could_not_be_read_is_not_written(self, label):
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            encode_label(label)

    def test_values_of_s_are_not_shown(self):
        for wrong in (["ill", "ill"], ["ill", ["well"]], ["ill", {"ill": "well"}], ["ill"]):
            sentence = refusal(Mechanism, edited(MECHANISM, "secrets", 0, "s_labels", to=wrong))
            assert "s_labels" in sentence or "p_sx" in sentence
            assert not re.search(r"\bill|well", sentence)


class TestMechanism:
    @pytest.mark.parametrize(
        ("steps", "value", "place"),
        [
            (["channel", 2, 1], "0.5", "channel[2][1] must be a finite number from 0 to 1. Got \"0.5\""),
            (["channel", 2, 1], True, "channel[2][1] must be"),
            (["channel", 2, 1], None, "channel[2][1] must be"),
            (["channel", 2, 1], [1], "channel[2][1] must be a finite number from 0 to 1. Got a list of 1"),
            (["channel", 2, 1], -1e-9, "channel[2][1] must be"),
            (["channel", 2, 1], 10**30, "channel[2][1] must be"),
            (["channel", 2], [1.0], "channel[2] must be a list of"),
            (["channel", 2], {}, "channel[2] must be a list"),
            (["channel", 0], [0.5, 0.5, 0.5][:2], "channel[0] must be"),
            (["channel"], [], "channel must be a list of 3. Got a list of 0"),
            (["channel"], {"0": 1}, "channel must be a list. Got an object"),
            (["x_labels"], [], "x_labels must be a list of at least 1"),
            (["x_labels", 1], "low", "x_labels[1] must be a label that is not in the list already"),
            (["secrets", 0, "p_sx", 0, 0], 1e-200, "must sum to 1"),
            (["secrets", 0, "p_sx", 0, 0], 1.0, "must sum to 1"),
            (["secrets", 0, "epsilon"], True, "epsilon must be a number of at least 0. Got true"),
            (["secrets", 0, "epsilon"], "0.1", "epsilon must be"),
            (["secrets", 0, "epsilon"], {"float": "nan"}, "epsilon must be"),
            (["secrets", 0, "epsilon"], {"float": "-inf"}, "epsilon must be"),
            (["secrets", 0, "epsilon"], 1e-9, "breaks its budget"),
            (["scope"], None, "scope must be one of"),
            (["solver"], "\ud800", "solver must be a text"),
            (["upper_bound"], 0, "upper_bound"),
            (["upper_bound"], "-1", "upper_bound must be a number"),
            (["upper_bound"], -1, "'upper_bound' parameter of Mechanism must be >= 0."),
            (["measure"], {"name": "alpha_lift"}, "measure.alpha is missing"),
            (["measure"], {"name": "alpha_lift", "alpha": 1}, "measure: The 'alpha' parameter"),
            (["measure"], {"name": "alpha_lift", "alpha": "2"}, "measure: The 'alpha' parameter"),
            (["measure"], {"name": "alpha_lift", "alpha": {"float": "inf"}}, "measure: The 'alpha'"),
            (["measure"], {"name": []}, "measure.name must be a text"),
            (["measure"], {}, "measure.name is missing"),
            (["objective"], {"name": "target"}, "objective.p_vx is missing"),
            (["objective"], {"name": "target", "p_vx": [[1, 1, 2]]}, "objective.p_vx[0][2] must be"),
            (["objective"], {"name": "target", "p_vx": [[1, 1, 0.5]]}, "objective.p_vx, column 2, must sum to 1"),
            (["objective"], {"name": "target", "p_vx": [[1, 1, 1], [0, 0]]}, "objective.p_vx[1] must be a list of 3"),
            (["objective"], {"name": "target", "recorded": [1]}, "objective.recorded must be a list of 2"),
            (["objective"], {"name": "guess", "p_vx": []}, "objective.p_vx is not a key"),
            (["p_x"], [1, 0, 0], "s_labels is not a key"),
            (["a b"], 1, '"a b" is not a key'),
        ],
    )  # fmt: skip
    def test_the_place_is_named(self, steps, value, place):
        assert place in refusal(Mechanism, edited(MECHANISM, *steps, to=value))

    def test_the_scope_must_be_one_of_the_measure(self):
        lip = {"name": "lip", "lower": None}
        content = json.loads(MECHANISM) | {"scope": "average", "measure": lip}
        assert "has no scope 'average'" in refusal(Mechanism, sealed(content))

    def test_the_table_of_a_target_is_kept_to_the_last_bit(self):
        target = Target(np.random.default_rng(0).random((5, 3)))
        mechanism = design_mechanism([[20, 10, 5], [10, 20, 30]], 0.1, utility=target)
        again = Mechanism.from_json(mechanism.to_json())
        assert again.objective == target
        assert again.to_json() == mechanism.to_json()


class TestTransformer:
    @pytest.mark.parametrize(
        ("steps", "value", "place"),
        [
            (["columns", 1, "values", 1], "a", "columns[1].values[1] must be a value that is not in the list already"),
            (["columns", 1, "values", 1], None, "columns[1].values[1] must be null for an empty bin and as the"),
            (["columns", 1, "values", -1], "z", "columns[1].values[5] must be null for an empty bin and as the"),
            (["columns", 1, "values", 1], {"missing": "NaT"}, "columns[1].values[1] must be a value"),
            (["columns", 1, "values"], [], "columns[1].values must be a list of at least 1"),
            (["columns", 1, "labels", 1], "a", "columns[1].labels[1] must be a label that is not in the list already"),
            (["columns", 1, "labels", 1], "z", "columns[1].labels[1] must be the value at the same position"),
            (["columns", 0, "labels", 1], 7, "columns[0].labels[1] must be a text for a bin"),
            (["columns", 0, "labels"], ["a"], "columns[0].labels must be a list of 4"),
            (["columns", 0, "values", 1], 1e6, "columns[0].values[1] must be a value in its own bin"),
            (["columns", 0, "values", 1], True, "columns[0].values[1] must be a finite number, or a time"),
            (["columns", 0, "values", 1], "33", "columns[0].values[1] must be a finite number, or a time"),
            (["columns", 0, "values", 2], {"float": "inf"}, "columns[0].values[2] must be a finite number"),
            (["columns", 0, "edges", 1], 0, "columns[0].edges[1] must be larger than the previous one"),
            (["columns", 0, "edges", 1], float("inf"), "columns[0].edges[1] must be a finite number"),
            (["columns", 0, "edges"], None, "columns[0].labels[0] must be the value at the same position"),
            (["columns", 0, "edges"], [], "columns[0].edges must be a list of 2"),
            (["columns", 0, "bounds"], [0, 1], "columns[0].bounds[1] must be outside the edges"),
            (["columns", 0, "bounds"], [99, 0], "columns[0].bounds[0] must be outside the edges"),
            (["columns", 0, "bounds", 0], {"float": "nan"}, "columns[0].bounds[0] must be a number"),
            (["columns", 1, "bounds", 0], 0, "columns[1].bounds[0] must be infinite without bins"),
            (["columns", 0, "has_missing"], 1, "columns[0].has_missing must be true or false. Got 1"),
            (["columns", 0, "has_missing"], False, "columns[0].edges must be a list of 3"),
            (["columns", 0, "symbols", 1], 10**9, "columns[0].symbols[1] must be an integer from -1 to 3"),
            (["columns", 0, "symbols", 1], 10**30, "columns[0].symbols[1] must be"),
            (["columns", 0, "symbols", 1], 1.0, "columns[0].symbols[1] must be"),
            (["columns", 0, "symbols", 1], True, "columns[0].symbols[1] must be"),
            (["columns", 0, "symbols", 1], 0, "columns[0].symbols must have every number from 0 to 3. Got no 1."),
            (["columns", 0, "symbols", 3], -1, "columns[0].symbols[3] must be an integer from 0"),
            (["columns", 0, "weights", 1], -1, "columns[0].weights[1] must be"),
            (["columns", 0, "weights", 1], 1.7e308, "columns[0].weights[1] must be"),
            (["symbols", 0], 10**9, "symbols[0] must be an integer from 0 to"),
            (["symbols", 0], 2, "symbols must have every number from 0 to"),
            (["combinations", 0, 1], 99, "combinations[0][1] must be an integer from 0 to 3. Got 99"),
            (["combinations", 1], [0, 0], "combinations[1] must be a row that comes after the previous"),
            (["combinations", 1], [0], "combinations[1] must be a list of 2. Got a list of 1"),
            (["members", 1], [0, 0], "members[1] must be a row that comes after the previous one"),
            (["member_of", 0], 10**6, "member_of[0] must be an integer from 0 to"),
            (["names", 0], -1, "names[0] must be an integer from 0 to"),
            (["weights", 0], "1", "weights[0] must be a finite number"),
            (["layout", "n_columns"], 10**9, "layout.n_columns must be an integer from 1 to 1000000"),
            (["layout", "names", 1], "sex", "layout.names[1] must be a label that is not in the list already"),
            (["layout", "names", 1], {"missing": "<NA>"}, "layout.names[1] must be a name that can be compared"),
            (["layout", "names"], ["a"], "layout.names must be a list of 6"),
            (["layout", "replaced"], ["age", "age"], "layout.replaced[1] must be a column that is not in the list"),
            (["layout", "replaced"], ["age"], "layout.replaced must be a list of 2"),
            (["layout", "replaced"], ["age", "ages"], "layout.replaced[1] must be a column"),
            (["layout", "replaced"], ["age", "sex"], "layout.replaced[1] must be a column without another role"),
            (["layout", "copied"], ["sex"], "layout.copied[0] must be a column without another role"),
            (["layout", "copied"], ["age"], "layout.copied[0] must be a column without another role"),
            (["layout", "copied"], [7], "layout.copied[0] must be a column"),
            (["layout", "sensitive"], None, "layout.sensitive must be a list"),
            (["layout", "leaking"], [{"column": "zone", "leakage": 1}], "layout.leaking[0].column must be a column that is copied"),
            (["layout", "leaking"], [{"column": "zone"}], "layout.leaking[0].leakage is missing"),
            (["types"], [], "types must be a list of 2"),
            (["types", 0, "family"], "complex", "types[0].family must be one of 'bool'"),
            (["types", 1, "bits"], "wide", "types[1].bits must be an integer"),
            (["types", 0, "native"], "datetime64[ns, dateutil//etc/passwd]", "types[0].native must be the name of a type"),
            (["types", 0, "zone"], "dateutil//etc/passwd", "types[0].zone must be the name of a time zone"),
            (["types", 0, "library"], "cudf", "types[0].library must be one of"),
            (["parameters", "output"], "all", "parameters.output must be one of 'label', 'symbol', 'posterior'"),
            (["parameters", "epsilon"], 1, "parameters.epsilon is not a key"),
            (["mechanism", "channel", 2, 1], 7, "mechanism.channel[2][1] must be a finite number"),
            (["mechanism", "x_labels", 0], "z", "mechanism.x_labels[0] must be the label that this symbol has in columns"),
            (["mechanism", "secrets", 0, "epsilon"], None, "epsilon must be"),
            (["mechanism", "version"], 2, "mechanism.version is not a key"),
            (["mechanism"], [], "mechanism must be an object"),
        ],
    )  # fmt: skip
    def test_the_place_is_named(self, steps, value, place, fitted):
        assert place in refusal(PrivacyFunnelTransformer, edited(fitted, *steps, to=value))

    @pytest.mark.parametrize("name", ["int4711", "006"])
    def test_a_type_that_pandas_does_not_know(self, name, fitted):
        made = PrivacyFunnelTransformer.from_json(edited(fitted, "types", 1, "native", to=name))
        assert len(made.transform(people(30))) == 30

    @pytest.mark.parametrize(
        ("steps", "value", "place"),
        [
            (["layout", "beside"], ["sex"], "layout.beside[0] must be a column without another role"),
            (["layout", "beside"], ["town"], "layout.beside[0] must be a column without another role"),
            (["layout", "beside"], [], "layout.beside must be a list of 1"),
            (["layout", "copied"], ["band"], "layout.beside[0] must be a column without another role"),
            (["beside", "pairs", 0], [9, 0], "beside.pairs[0][0] must be"),
            (["beside", "pairs", 1], [0, 0], "beside.pairs[1] must be a row that comes after the previous"),
            (["beside", "pair_weights", 0], 0, "beside.pair_weights[0] must be positive"),
            (["beside", "columns", 0, "symbols", 1], 0, "beside.columns[0].symbols must have every number"),
            (["beside", "columns", 0, "edges"], [1.0, 2.0, 3.0], "beside.columns[0]"),
            (["mechanism", "strata", 0], 1, "mechanism.strata[0] must be the first number of its pair"),
            (["names"], "swapped", "names[0] must be a symbol with the same columns beside it"),
        ],
    )  # fmt: skip
    def test_columns_beside_it(self, steps, value, place):
        beside = {"sensitive": "sex", "columns": ["town"], "beside": ["band"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows
            text = PrivacyFunnelTransformer(0.7, **beside).fit(people()).to_json()
        if value == "swapped":
            names = json.loads(text)["names"]
            value = names[::-1]
        assert place in refusal(PrivacyFunnelTransformer, edited(text, *steps, to=value))

    def test_groups_without_columns_beside_it(self, fitted):
        n_x = len(json.loads(fitted)["mechanism"]["x_labels"])
        text = edited(fitted, "mechanism", "strata", to=[0] * n_x)
        assert "mechanism must be a mechanism without strata" in refusal(
            PrivacyFunnelTransformer, text
        )

    @pytest.mark.parametrize(
        ("key", "sentence"),
        [
            ("names", r"names\[\d+\] must be the symbol with the label of this output"),
            ("member_of", r"members\[0\]\[0\] must be a value in the combination that member_of names"),
            ("symbols", r"mechanism.x_labels\[0\] must be the label that this symbol has in columns"),
        ],
    )  # fmt: skip
    def test_codes_in_another_order(self, fitted, key, sentence):
        text = edited(fitted, key, to=json.loads(fitted)[key][::-1])
        assert re.search(sentence, refusal(PrivacyFunnelTransformer, text))

    def test_times_in_bins_are_of_one_kind(self, by_columns):
        for label in ({"date": "2020-02-01"}, 3, {"timedelta": "P1DT0H0M0S", "unit": "ns"}):
            text = edited(by_columns["since"], "columns", 0, "values", 1, to=label)
            assert "columns[0].values[1] must be a finite number, or a time like" in refusal(
                PrivacyFunnelTransformer, text
            )

    def test_only_columns_that_are_listed_leave(self):
        frame = people()[["sex", "band", "age"]]
        fitted = PrivacyFunnelTransformer(0.01, sensitive="sex", columns=["band"]).fit(frame)
        content = json.loads(fitted.to_json())
        content["layout"]["sensitive"] = []  # S is a column like others now
        loaded = PrivacyFunnelTransformer.from_json(sealed(content))
        assert loaded.transform(frame).columns.tolist() == ["band"]
        assert loaded.set_params(remainder="passthrough").transform(frame).shape == (300, 1)

    def test_columns_that_would_have_one_name(self, by_columns):
        content = json.loads(by_columns["town"])
        content["parameters"] |= {"output": "posterior"}
        content["layout"]["names"][1] = "town_a"
        content["layout"]["copied"] = ["town_a"]
        content["types"] *= 2
        content["layout"]["leaking"] = []
        sentence = refusal(PrivacyFunnelTransformer, sealed(content))
        assert "layout: The output would have the column 'town_a' twice" in sentence

    def test_an_array_of_many_columns_is_read_at_once(self):
        frame = people()
        array = frame[["band", "town"]].to_numpy(dtype=object)
        funnel = PrivacyFunnelTransformer(0.01, columns=[1], remainder="passthrough")
        with pytest.warns(PrivacyLeakWarning):
            text = funnel.fit(array, sensitive_features=frame["sex"]).to_json()
        start = time.process_time()
        wide = PrivacyFunnelTransformer.from_json(edited(text, "layout", "n_columns", to=10**6))
        assert wide.n_features_in_ == 10**6
        assert time.process_time() - start < 20


def columns_of_all_kinds():
    """Columns that a transformer can be fitted to and written with."""
    numbers = np.random.default_rng(0).integers(9, size=90)
    day = pd.Timestamp("2024-03-30")
    return {
        "ints": numbers,
        "huge": numbers.astype(np.uint64) * np.uint64(2**60),
        "floats": numbers * 1e300,
        "short": (numbers / 3).astype(np.float32),
        "missing": np.where(numbers == 3, np.nan, numbers),
        "nullable": pd.array(numbers, dtype="Int64"),
        "none": [None] * 90,
        "bools": numbers > 4,
        "texts": [["\0", "[", '"', "é", "(pool)"][i % 5] for i in numbers],
        "times": day + pd.to_timedelta(numbers, "h"),
        "zoned": (day + pd.to_timedelta(numbers, "h")).tz_localize("UTC").tz_convert("Asia/Tokyo"),
        "spans": pd.to_timedelta(-977 * numbers, "ms"),
        "dates": [(day + pd.Timedelta(i, "D")).date() for i in numbers],
        "tuples": [(int(i), None, (float("nan"),)) for i in numbers],
        "mixed": pd.Categorical([[1, "1", 2.5, float("inf")][i % 4] for i in numbers]),
        "cut": pd.cut(numbers, [-np.inf, 2, 5, np.inf]),
    }


class TestWhatIsWritten:
    @pytest.mark.parametrize("n_bins", [None, 1, 4])
    @pytest.mark.parametrize("name", columns_of_all_kinds())
    def test_it_is_read_again(self, name, n_bins):
        values = columns_of_all_kinds()[name]
        frame = pd.DataFrame({"s": np.arange(90) % 2, "a": np.arange(90) % 3, name: values})
        for columns in ([name], ["a", name]):
            funnel = PrivacyFunnelTransformer(
                0.01, sensitive="s", columns=columns, n_bins=n_bins, solver="watchdog"
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = funnel.fit(frame)
            text = fitted.to_json()
            again = PrivacyFunnelTransformer.from_json(text)
            assert again.to_json() == text
            released = [f.set_params(random_state=0).transform(frame) for f in (again, fitted)]
            pd.testing.assert_frame_equal(*released)


class TestAnyChange:
    """Whatever is done to a file, it is refused with a place, or it is as good as any."""

    PLACE = re.compile(
        r"is malformed: (\S+ (is missing|is not a key|must be|must have|must sum)|the document must be|.*(channel|p_sx|"
        r"upper_bound|scope|p_vx|parameter of|distribution of X|column ))|line \d+ column \d+|no schema|format version|"
        r"does not match its checksum|user-defined \w+ \((mechanism\.)?(measure|objective)\.name is"
    )
    EXPECTED = "X lacks the columns|Found unknown values|features as input|must hold numbers or"

    def check(self, documents, seeds):
        for seed in seeds:
            cls, text = documents[seed % len(documents)]
            made = outcome(cls.from_json, tampered(text, seed))
            if isinstance(made, Exception):
                assert type(made) is ValueError, seed
                assert self.PLACE.search(str(made)), (seed, made)
                assert len(str(made)) < 1000, seed
            else:
                self.use(made, seed)

    def use(self, made, seed):
        assert type(made).from_json(made.to_json()).to_json() == made.to_json(), seed
        if isinstance(made, Mechanism):
            assert repr(made)
            assert len(made.table()) == len(made.y_labels)
            return
        rows = people(30)
        if fitted_of(made).roles.names is None:
            rows = rows[["band", "town"]].to_numpy(dtype=object)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Values that fit did not see")
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
            released = outcome(made.transform, rows)
        if isinstance(released, Exception):
            assert re.search(self.EXPECTED, str(released)), (seed, released)
        else:
            assert released.shape == (len(rows), len(made.get_feature_names_out())), seed

    def test_some(self, documents):
        self.check(documents, range(700))

    @pytest.mark.slow
    def test_many(self, documents):
        self.check(documents, range(700, 50_000))


class TestPlace:
    """The room that others describe formats with."""

    def test_keys_and_paths(self):
        place = Place({"a": [{"b": 1}], "c d": 2}, "thing")
        with pytest.raises(ValueError, match=r'this thing is malformed: "c d" is not a key'):
            place.keys("a")
        with pytest.raises(ValueError, match=r"malformed: e is missing"):
            place.keys("a", "c d", "e")
        (item,) = place.keys("a", "c d")["a"].items(1)
        assert item["b"].path == "a[0].b"
        assert Place(None, "thing").optional(Place.text) is None

    def test_empty_lists(self):
        assert Place([], "thing").items() == []
        assert Place([], "thing").numbers(0).shape == (0,)
        for read in (lambda p: p.numbers(None), lambda p: p.labels(), lambda p: p.items(fewest=1)):
            with pytest.raises(ValueError, match="the document must be a list of at least 1"):
                read(Place([], "thing"))

    def test_a_header_is_read_and_taken_off(self):
        keys = set(read_document(MECHANISM, "mechanism").value)
        assert set(json.loads(MECHANISM)) - keys == {"schema", "version", "checksum"}
