"""Random designs beside a published column, each checked by formulas of this script.

Run ``python benchmarks/random_beside.py > docs/measured/random_beside.txt`` (2,000 designs, some
ten minutes). Tables, secrets, measures, scopes, utilities and budgets are random; a quarter of the
designs come from rows, through the transformer, and a tenth have a confidence. Nothing here calls
the metrics of the package: leakages and utilities are sums over the channel, and upper bounds are
compared with a linear program over a grid of posteriors. It fails if anything is violated.

Gaps are of designs with any number of outputs and without a confidence. On average over outputs
some are wide, because the transformer has a name for each symbol and merges an output too many.
"""

import argparse
import itertools
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.special import xlogy

from skprivacy import PrivacyFunnelTransformer, design_mechanism
from skprivacy.exceptions import BesideError
from skprivacy.measures import AlphaLift
from skprivacy.utilities import Distortion, Target

# The documented tolerance of budgets, and that of figures that are summed in another order.
RTOL, ATOL, ROUNDING = 1e-9, 1e-12, 1e-9

# With a confidence: how many joints are drawn around the rows, and by how much the share of those
# within the budget may be below the confidence, for two sets of random draws.
CONFIDENCE, N_DRAWS, SLACK = 0.95, 2000, 0.03


def same(value):
    """Return a value: the scale of epsilon of some measures is their own."""
    return value


# Of lifts P(s|y) / P(s), where P(s) is p: the value, its epsilon, and the value of an epsilon.
ALPHA = 5.0
MEASURES = {
    "kl": (lambda lift, p: (p * xlogy(lift, lift)).sum(-1), same, same),
    "l1": (lambda lift, p: (p * abs(lift - 1)).sum(-1), same, same),
    "chi2": (lambda lift, p: (p * (lift - 1) ** 2).sum(-1), np.sqrt, np.square),
    "max_lift": (lambda lift, p: lift.max(-1), np.log, np.exp),
    "alpha_lift": (lambda lift, p: (p * lift**ALPHA).sum(-1) ** (1 / ALPHA), np.log, np.exp),
    "lip": (lambda lift, p: np.maximum(lift.max(-1), 1 / lift.min(-1)), np.log, np.exp),
    "parity": (lambda lift, p: (lift.max(-1) - lift.min(-1)) / 2, same, same),
}


def values(p_sy, measure):
    """Return P(y) and the value of each output, of joints P(s, y) in the last two axes."""
    p_s, p_y = p_sy.sum(-1), p_sy.sum(-2)
    lifts = np.swapaxes(p_sy, -1, -2) / (p_y[..., None] * p_s[..., None, :])
    return p_y, MEASURES[measure][0](lifts, p_s[..., None, :])


def leakage(p_sy, measure, scope):
    """Return what the outputs of joints P(s, y) leak, on the scale of epsilon."""
    p_y, found = values(p_sy, measure)
    return MEASURES[measure][1](found.max(-1) if scope == "per_output" else (p_y * found).sum(-1))


def information(joint):
    """Return the mutual information of a joint."""
    entropies = (-xlogy(p, p).sum() for p in (joint.sum(0), joint.sum(1), joint))
    return next(entropies) + next(entropies) - next(entropies)


@dataclass
class Case:
    """What is designed: tables by name of the secret, and the z of each symbol of X."""

    tables: dict
    strata: np.ndarray
    measure: str
    scope: str
    utility: str
    data: Any  # P(V|X) of a target, or a table of losses
    max_outputs: int | None
    confidence: float | None
    from_rows: bool
    budgets: dict = field(default_factory=dict)
    is_feasible: bool = True

    @property
    def joints(self):
        """The joints P(s, x) by name of the secret."""
        return {name: table / table.sum() for name, table in self.tables.items()}

    @property
    def p_x(self):
        """The distribution of X."""
        return next(iter(self.joints.values())).sum(axis=0)

    @property
    def z_of_x(self):
        """The channel that shows z alone."""
        return np.eye(self.strata.max() + 1)[self.strata]

    def worth(self, joint_with_y):
        """Return the utility of a joint P(x, y): that of Y, which shows z too."""
        if self.utility == "mutual_information":
            return information(joint_with_y)
        if self.utility == "target":
            return information(self.data @ joint_with_y)
        if self.utility == "guess":
            return joint_with_y.max(axis=0).sum()
        return -(self.losses.T @ joint_with_y).min(axis=0).sum()

    @property
    def losses(self):
        """The losses, where no symbol is read as one of another z: that is published."""
        return self.data + 10.0 * (self.strata[:, None] != self.strata)

    def asked(self):
        """Return the arguments of the design."""
        made = {"target": Target, "distortion": Distortion}.get(self.utility)
        return {
            "measure": AlphaLift(ALPHA) if self.measure == "alpha_lift" else self.measure,
            "scope": self.scope,
            "utility": self.utility if made is None else made(self.data),
            "max_outputs": self.max_outputs,
            "confidence": self.confidence,
        }


def random_tables(rng, n_x):
    """Return random counts of one secret, or of two, with every group and symbol in them."""
    sizes = [int(rng.integers(2, 5))] if rng.random() < 0.75 else [2, int(rng.integers(2, 4))]
    spread, n = rng.choice([0.3, 1.0, 4.0]), int(10 ** rng.uniform(2.5, 4.5))
    joint = rng.dirichlet(np.full(np.prod(sizes) * n_x, spread))
    counts = rng.multinomial(n, joint).reshape(*sizes, n_x).astype(float)
    counts += counts.sum(axis=tuple(range(len(sizes)))) == 0
    axes = range(len(sizes))
    tables = {f"s{j}": counts.sum(axis=tuple(a for a in axes if a != j)) for j in axes}
    return tables if all(t.sum(axis=1).all() for t in tables.values()) else random_tables(rng, n_x)


def random_case(rng):
    """Return a random case with budgets between what z leaks by itself and what x and z do."""
    n_x = int(rng.integers(3, 9))
    n_z = int(rng.integers(2, min(4, n_x) + 1))
    strata = np.sort(np.append(np.arange(n_z), rng.integers(n_z, size=n_x - n_z)))
    measure = str(rng.choice(list(MEASURES)))
    scope = "average" if measure != "lip" and rng.random() < 0.4 else "per_output"
    utility = str(rng.choice(["mutual_information", "target", "guess", "distortion"]))
    data = rng.dirichlet(np.ones(3), size=n_x).T if utility == "target" else None
    if utility == "distortion":
        data = rng.random((n_x, n_x)) * (1 - np.eye(n_x))
    max_outputs = int(rng.integers(n_z, n_x + 1)) if rng.random() < 0.25 else None
    confidence = CONFIDENCE if rng.random() < 0.1 else None
    from_rows = utility != "distortion" and rng.random() < 0.3
    asked = measure, scope, utility, data, max_outputs, confidence, from_rows
    case = Case(random_tables(rng, n_x), strata, *asked)
    kind = rng.choice(["between", "just enough", "too little", "all"], p=[0.85, 0.05, 0.05, 0.05])
    for name, joint in case.joints.items():
        least = float(leakage(joint @ case.z_of_x, measure, scope))
        most = float(leakage(joint, measure, scope))
        if kind == "too little" or np.isinf(least):
            case.budgets[name] = 0.9 * min(least, 1.0)
            case.is_feasible = case.is_feasible and least < ROUNDING
            continue
        share = {"just enough": 1e-6, "all": 1.1}.get(kind, rng.random() ** 2)
        case.budgets[name] = least * (1 + 1e-6) + share * (min(most, least + 3.0) - least)
    return case


def rows_of(case, rng):
    """Return a table with the rows of a case; the secrets, drawn as one, are independent given x.

    The tables of the secrets are counted again from the rows, because they are about them.
    """
    first, *others = case.tables.values()
    s, x = np.divmod(np.repeat(np.arange(first.size), first.astype(int).ravel()), first.shape[1])
    frame = pd.DataFrame({"s0": s, "x": x, "z": case.strata[x]})
    for table in others:
        drawn = [rng.permutation(np.repeat(np.arange(len(t)), t.astype(int))) for t in table.T]
        frame["s1"] = pd.concat(
            [pd.Series(drawn[symbol], index=rows.index) for symbol, rows in frame.groupby("x")]
        )
    frame["v"] = 0
    if case.utility == "target":
        v_of_x = (case.data.cumsum(axis=0)[:, x] < rng.random(len(x))).sum(axis=0)
        frame["v"] = v_of_x.clip(max=len(case.data) - 1)
        case.data = pd.crosstab(frame["v"], frame["x"], normalize="columns").to_numpy()
    names = [f"x{i}" for i in range(first.shape[1])]
    return frame.assign(x=np.array(names)[x], z=frame["z"].astype(str)), names


def designed(case, rng):
    """Return the mechanism, its channel with a row for each symbol, and what is wrong."""
    if not case.from_rows:
        beside, epsilon, tables = case.strata.tolist(), case.budgets, case.tables
        if len(tables) == 1:
            (tables,), (epsilon,) = tables.values(), epsilon.values()
        mechanism = design_mechanism(tables, epsilon, beside=beside, **case.asked())
        return mechanism, mechanism.channel, []
    frame, names = rows_of(case, rng)
    asked = case.asked() | ({"utility": "target"} if case.utility == "target" else {})
    funnel = PrivacyFunnelTransformer(
        case.budgets, sensitive=list(case.budgets), columns="x", beside="z", alphabet="values",
        random_state=0, **asked,
    )  # fmt: skip
    wrong, target = [], frame.pop("v") if case.utility == "target" else None
    released = funnel.fit(frame, target).transform(frame)
    if not (released["z"] == frame["z"]).all():
        wrong.append("z changed")
    if set(zip(released["x"], released["z"], strict=True)) - set(
        zip(frame["x"], frame["z"], strict=True)
    ):
        wrong.append("a pair of x and z that no row has")
    mechanism = funnel.mechanism_
    order = [
        mechanism.x_labels.index((x, str(z))) for x, z in zip(names, case.strata, strict=True)
    ]
    return mechanism, mechanism.channel[order], wrong


def grid_worth(case):
    """Return the utility of the best mixture of posteriors on a grid, within the budgets."""
    points = [case.p_x * (case.strata == z) for z in np.unique(case.strata)]
    for z in np.unique(case.strata):
        symbols = np.flatnonzero(case.strata == z)
        steps = {1: 1, 2: 60, 3: 16, 4: 9}.get(len(symbols), 5)
        for cut in itertools.combinations(range(steps + len(symbols) - 1), len(symbols) - 1):
            shares = np.diff([-1, *cut, steps + len(symbols) - 1]) - 1
            points.append(np.bincount(symbols, shares, len(case.p_x)))
    points = np.array([point / point.sum() for point in points])
    allowed, charges, limits = np.ones(len(points), bool), [], []
    for name, joint in case.joints.items():
        given = points @ (joint / joint.sum(axis=0)).T
        value, _, of_epsilon = MEASURES[case.measure]
        found = value(given / joint.sum(axis=1), joint.sum(axis=1))
        limit = of_epsilon(case.budgets[name])
        if case.scope == "per_output":
            allowed &= found <= limit
        else:
            charges.append(found)
            limits.append(limit)
    points, charges = points[allowed], [charge[allowed] for charge in charges]
    worth = np.array([_of_point(case, point) for point in points])
    rows = (np.array(charges), limits) if charges else (None, None)
    answer = linprog(-worth, *rows, points.T, case.p_x)
    return -answer.fun + _offset(case) if answer.success else -np.inf


def _of_point(case, point):
    """Return the share of one output in the utility, up to a constant."""
    if case.utility == "mutual_information":
        return xlogy(point, point).sum()
    if case.utility == "target":
        return xlogy(case.data @ point, case.data @ point).sum()
    return point.max() if case.utility == "guess" else -(case.losses.T @ point).min()


def _offset(case):
    """Return that constant."""
    if case.utility in ("guess", "distortion"):
        return 0.0
    shares = case.p_x if case.utility == "mutual_information" else case.data @ case.p_x
    return -xlogy(shares, shares).sum()


def problems(case, mechanism, channel):
    """Yield every promise that a mechanism breaks, by the formulas above."""
    if (channel < 0).any() or abs(channel.sum(axis=1) - 1).max() > ATOL:
        yield "not a channel"
    mixed = [len(set(case.strata[column > 0])) for column in channel.T]
    if max(mixed) > 1:
        yield "an output mixes values of z"
    if case.max_outputs is not None and channel.shape[1] > case.max_outputs:
        yield "too many outputs"
    used = channel[:, case.p_x @ channel > 0]
    for name, joint in case.joints.items():
        secret = mechanism.secrets.get(name) or mechanism.only_secret(name)
        yield from _problems_of_secret(case, secret, joint @ used, case.budgets[name])
    least, most = case.worth(case.p_x[:, None] * case.z_of_x), case.worth(np.diag(case.p_x))
    worth = case.worth(case.p_x[:, None] * used)
    if abs(worth - mechanism.utility) > ROUNDING:
        yield f"utility {mechanism.utility}, not {worth}"
    share = (worth - least) / (most - least) if most - least > ROUNDING else None
    if share is not None and abs(share - mechanism.normalized_utility) * (most - least) > ROUNDING:
        yield f"normalized_utility {mechanism.normalized_utility}, not {share}"
    if worth > mechanism.upper_bound + ROUNDING:
        yield f"utility {worth} above the bound {mechanism.upper_bound}"
    if (other := grid_worth(case)) > mechanism.upper_bound + ROUNDING:
        yield f"a channel with {other} above the bound {mechanism.upper_bound}"


def _problems_of_secret(case, secret, p_sy, epsilon):
    """Yield the promises about one secret that are broken."""
    reached = float(leakage(p_sy, case.measure, case.scope))
    if reached > epsilon * (1 + RTOL) + ATOL + 1e-13:
        yield f"leaks {reached}, budget {epsilon}"
    told = {"per_output": secret.max_leakage, "average": secret.average_leakage}
    for scope, figure in told.items():
        if case.measure == "lip" and scope == "average":
            continue
        own = float(leakage(p_sy, case.measure, scope))
        if abs(MEASURES[case.measure][2](own) - MEASURES[case.measure][2](figure)) > ROUNDING:
            yield f"{scope} leakage {figure}, not {own}"
    if case.confidence is not None and secret.limit_in(case.scope) > epsilon * (1 + RTOL) + ATOL:
        yield "the limit is over the budget"


def shares_within(case, channel, rng):
    """Return the shares of joints around the rows that are within the budgets."""
    for name, table in case.tables.items():
        shapes = table + table.sum(axis=0) / table.sum()
        drawn = rng.gamma(np.where(shapes > 0, shapes, 1.0), size=(N_DRAWS, *table.shape))
        drawn = np.where(shapes > 0, drawn, 0.0)
        drawn /= drawn.sum(axis=(1, 2), keepdims=True)
        p_sy = np.einsum("nsx,xy->nsy", drawn, channel[:, case.p_x @ channel > 0])
        reached = leakage(p_sy, case.measure, case.scope)
        yield float((reached <= case.budgets[name] * (1 + RTOL)).mean())


@dataclass
class Found:
    """What came of a case."""

    case: Case
    outcome: str
    wrong: list
    gap: float = np.nan
    within: tuple = ()
    seconds: float = 0.0


def checked(seed):
    """Return what came of one random case."""
    rng = np.random.default_rng([36, seed])
    case, start = random_case(rng), time.process_time()
    try:
        mechanism, channel, wrong = designed(case, rng)
    except BesideError:
        if case.is_feasible and case.confidence is not None:  # so z itself exceeds the budgets
            case.is_feasible = min(shares_within(case, case.z_of_x, rng)) > CONFIDENCE + SLACK
        return Found(case, "refused", ["refused, but possible"] if case.is_feasible else [])
    seconds = time.process_time() - start
    if not case.is_feasible:
        wrong.append("designed, but impossible")
    wrong += problems(case, mechanism, channel)
    within = () if case.confidence is None else tuple(shares_within(case, channel, rng))
    each = 1 - (1 - CONFIDENCE) / len(case.tables)
    wrong += [f"within in {share:.3f} of the draws" for share in within if share < each - SLACK]
    return Found(case, "designed", wrong, mechanism.gap, within, seconds)


def show(found):
    """Print a table by measure and scope, and everything that is wrong."""
    print(f"{len(found):,} random designs beside a column, by measure and scope")
    print("refused: no mechanism exists; certified: gap up to 1e-5; gap: the largest of others")
    print(f"{'measure':10} {'scope':10} {'designs':>7} {'refused':>7} {'certified':>9} "
          f"{'gap':>8} {'seconds':>7} {'violations':>10}")  # fmt: skip
    for measure, scope in itertools.product(MEASURES, ["per_output", "average"]):
        group = [f for f in found if (f.case.measure, f.case.scope) == (measure, scope)]
        made = [f for f in group if f.outcome == "designed"]
        if not made:
            continue
        free = [f.gap for f in made if f.case.max_outputs is None and f.case.confidence is None]
        certified = np.mean([gap <= 1e-5 * 1.01 for gap in free] or [np.nan])
        n_refused, seconds = len(group) - len(made), np.mean([f.seconds for f in made])
        figures = f"{certified:9.3f} {max(free, default=np.nan):8.1e} {seconds:7.2f}"
        n_wrong = sum(bool(f.wrong) for f in group)
        print(f"{measure:10} {scope:10} {len(group):7} {n_refused:7} {figures} {n_wrong:10}")
    kinds = Counter()
    for f in found:
        kinds["two secrets"] += len(f.case.tables) > 1
        kinds["from rows"] += f.case.from_rows
        kinds["limited outputs"] += f.case.max_outputs is not None
        kinds["with a confidence"] += f.case.confidence is not None
        kinds["of these designed"] += len(f.within) > 0
    print(", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    if within := [share for f in found for share in f.within]:
        share = f"{np.mean(within):.3f} of the joints around the rows are within the budget"
        print(f"with a confidence: {share}, at least {min(within):.3f}")
    print(f"{sum(bool(f.wrong) for f in found)} designs break a promise")


@np.errstate(divide="ignore")
def main(n_designs, first):
    """Design, check, print; return what is wrong."""
    found, wrong = [], []
    for seed in range(first, first + n_designs):
        one = checked(seed)
        found.append(one)
        if one.wrong:
            wrong.append(f"seed {seed}: {'; '.join(one.wrong)}")
            print(wrong[-1], file=sys.stderr, flush=True)
    show(found)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if wrong := main(options.designs, options.first):
            sys.exit("\n".join(wrong))
