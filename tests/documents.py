"""Documents of the package that somebody has edited, with care or without."""

import hashlib
import json
import random

import numpy as np
import pandas as pd

from skprivacy import PrivacyFunnelTransformer, design_mechanism
from skprivacy.measures import AlphaLift, Lip
from skprivacy.utilities import Target


def sealed(content):
    """The text of a document with a checksum that is right, as an attacker would write it."""
    content = {key: value for key, value in content.items() if key != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps({"checksum": hashlib.sha256(canonical.encode()).hexdigest()} | content)


def edited(text, *steps, to):
    """A document in which the value at some place is another."""
    content = json.loads(text)
    part = content
    for step in steps[:-1]:
        part = part[step]
    part[steps[-1]] = to
    return sealed(content)


def people(n=300):
    """A small table with columns of every kind that an alphabet can have."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=n)
    age = np.where(rng.random(n) < 0.1, np.nan, np.round(30 + 9 * sex + 8 * rng.random(n), 1))
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "band": rng.binomial(3, 0.3 + 0.3 * sex),
            "age": age,
            "town": rng.choice(list("aaaabbbbccde"), size=n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "zone": pd.to_datetime(rng.integers(0, 3, n), unit="D").tz_localize("Europe/Berlin"),
        }
    )


def mechanisms():
    """Texts of mechanisms of several kinds."""
    joint = pd.DataFrame([[20, 10, 5], [10, 20, 30]], columns=["low", 2, None], index=list("fm"))
    target = Target([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
    for options in (
        {},
        {"measure": AlphaLift(3), "scope": "average"},
        {"measure": Lip(lower=0.3), "utility": "guess"},
        {"utility": target, "measure": "max_lift"},
        {"epsilon": np.inf, "measure": "chi2"},
        {"epsilon": 0.5, "beside": ["a", "a", "b"], "utility": target},
    ):
        mechanism = design_mechanism(joint, **{"epsilon": 0.05} | options)
        yield mechanism.to_json()
        yield mechanism.to_json(include_joint=False)


def several_secrets():
    """Texts of mechanisms that keep several secrets."""
    sex, town = [[20, 10, 5], [10, 20, 30]], [[10, 5, 5], [10, 5, 20], [10, 20, 10]]
    both = [[10, 2, 1], [5, 3, 2], [5, 5, 2], [0, 3, 4], [5, 2, 18], [5, 15, 8]]
    budgets = {"sex": 0.05, ("sex", "town"): 0.1}
    for options in ({}, {"confidence": 0.9, "scope": "average"}):
        made = design_mechanism({"sex": sex, ("sex", "town"): town}, budgets, **options)
        joint = np.array(both) / np.sum(both)
        yield made.renamed(together=(joint, tuple("abcdef"))).to_json()
        yield made.to_json(include_joint=False)


def transformers():
    """Texts of fitted transformers of several kinds."""
    frame = people()
    for columns, options in (
        (["band"], {}),
        (["age"], {"n_bins": 3}),
        (["age"], {"n_bins": {"age": [0, 20, 33, 40, 99]}, "output": "symbol"}),
        (["town"], {"max_categories": 3, "remainder": "passthrough"}),
        (["since"], {"n_bins": 4, "output": "posterior"}),
        (["zone", "band"], {"measure": "max_lift", "handle_unknown": "error"}),
        (["town", "age", "since"], {"n_bins": 2, "max_categories": 4, "remainder": "passthrough"}),
        (["town"], {"epsilon": 0.8, "beside": ["zone", "band"], "output": "symbol"}),
    ):
        options = {"epsilon": 0.05, "sensitive": "sex"} | options
        funnel = PrivacyFunnelTransformer(columns=columns, **options)
        yield funnel.fit(frame).to_json()
    array = frame[["band", "town"]].to_numpy(dtype=object)
    funnel = PrivacyFunnelTransformer(0.05, columns=[1], remainder="passthrough")
    yield funnel.fit(array, sensitive_features=frame["sex"]).to_json()
    several = PrivacyFunnelTransformer({"sex": 0.05, ("sex", "zone"): 0.1}, columns=["band"])
    yield several.set_params(sensitive=["sex", "zone"]).fit(frame).to_json()


NASTY = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e-320, 1e-30, 1e308, 10**9, 2**63, 2**64, 10**30,
    -(10**30), float("inf"), float("-inf"), float("nan"), "", "a", "0", "1", "(pooled)", "\0",
    "\ud800", "x" * 1000, [], {}, [[]], [0], [1.0], [None], ["a", "a"], {"a": 1},
    {"float": "inf"}, {"float": "nan"}, {"float": "1.5"}, {"float": 1}, {"missing": "NaT"},
    {"missing": "<NA>"}, {"missing": "?"}, {"tuple": []}, {"tuple": [1, "a"]}, {"tuple": 3},
    {"tuple": [{"missing": "<NA>"}]}, {"tuple": [{"float": "nan"}]},
    {"timestamp": "2024-01-02T03:04:05", "unit": "ns", "tz": None},
    {"timestamp": "2024-01-02T03:04:05", "unit": "s", "tz": "Asia/Tokyo"},
    {"timestamp": "9999-01-02T03:04:05", "unit": "s", "tz": None},
    {"timestamp": "now", "unit": "ns", "tz": None},
    {"timestamp": "2024-99-02T03:04:05", "unit": "ns", "tz": None},
    {"timestamp": "2024-01-02T03:04:05", "unit": "year", "tz": None},
    {"timestamp": "2024-01-02T03:04:05", "unit": "ns", "tz": "Mars/North"},
    {"timestamp": "2024-01-02T03:04:05", "unit": "ns", "tz": "dateutil//dev/stdin"},
    {"timestamp": "2024-01-02T03:04:05", "unit": "ns", "tz": "Europe"},
    {"timestamp": "2024-01-02T03:04:05", "unit": "ns", "tz": 3},
    {"timedelta": "P1DT2H0M0S", "unit": "ns"}, {"timedelta": "1T", "unit": "ns"},
    {"timedelta": "P99999999999DT0H0M0S", "unit": "ns"}, {"date": "2024-01-02"},
    {"date": "20240102"}, {"date": 3}, {"interval": [0, 1], "closed": "left"},
    {"interval": [1, 0], "closed": "left"}, {"interval": ["a", None], "closed": "both"},
    {"name": "kl"}, {"name": "guess"}, {"name": "target", "recorded": [0.1, 0.2]},
]  # fmt: skip


def mutated(content, rng):
    """The content with something in it changed at random."""
    content = {"": json.loads(json.dumps(content))}
    parent, step = _somewhere(content, rng)
    value = parent[step]
    change = rng.choice([_replace, _everywhere, _remove, _resize, _swap, _nudge, _wrap])
    change(content, parent, step, value, rng)
    return content[""]


def _somewhere(content, rng):
    """A container and a step in it, as likely near the top as in the depth."""
    parent, step = content, ""
    while isinstance(parent[step], dict | list) and parent[step] and rng.random() < 0.8:
        parent = parent[step]
        step = rng.choice(list(parent)) if isinstance(parent, dict) else rng.randrange(len(parent))
    return parent, step


def _replace(content, parent, step, value, rng):
    parent[step] = rng.choice(NASTY)


def _everywhere(content, parent, step, value, rng):
    """Replace all values that are equal to one, so that the document may still hang together."""
    new = rng.choice(NASTY)

    def replaced(part):
        if json.dumps(part) == json.dumps(value):
            return new
        if isinstance(part, dict):
            return {key: replaced(inner) for key, inner in part.items()}
        return [replaced(inner) for inner in part] if isinstance(part, list) else part

    content[""] = replaced(content[""])


def _remove(content, parent, step, value, rng):
    if parent is not content:
        del parent[step]


def _resize(content, parent, step, value, rng):
    if isinstance(value, list):
        extra = rng.choice([rng.choice(NASTY), rng.choice(value or [0])])
        parent[step] = rng.choice([[*value, extra], value[:-1], value[::-1], value * 2])
    elif isinstance(value, dict):
        value[rng.choice(["name", "comment", "values", "\ud800", "p_sx"])] = rng.choice(NASTY)
    else:
        _nudge(content, parent, step, value, rng)


def _swap(content, parent, step, value, rng):
    other, there = _somewhere(content, rng)
    if parent is not content and other is not content:
        # By copies, or a value could come to stand within itself.
        mine, other[there] = json.dumps(other[there]), json.loads(json.dumps(value))
        parent[step] = json.loads(mine)


def _nudge(content, parent, step, value, rng):
    if isinstance(value, bool):
        parent[step] = not value
    elif isinstance(value, int | float):
        parent[step] = rng.choice(
            [value + 1, value - 1, -value, value * 2, float(value), str(value)]
        )
    elif isinstance(value, str):
        parent[step] = rng.choice([value + "x", value[:-1], value.upper(), value + "\0"])


def _wrap(content, parent, step, value, rng):
    for _ in range(rng.choice([1, 5, 40, 100])):
        value = rng.choice([[value], {"tuple": [value]}])
    parent[step] = value


def damaged(text, rng):
    """The text with some letters lost, doubled or replaced, as by accident."""
    at, n = rng.randrange(len(text)), rng.choice([1, 1, 2, 10, 1000])
    middle = rng.choice(["", text[at : at + n] * 2, rng.choice('019[]{}",:-e')])
    return rng.choice([text[:at], text[at:], text[:at] + middle + text[at + n :]])


def tampered(text, seed):
    """The text after an accident or, with a new checksum, after a few changes to its content."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return damaged(text, rng)
    content = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        content = mutated(content, rng)
    return sealed(content) if isinstance(content, dict) else json.dumps(content)
