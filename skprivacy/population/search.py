"""Search for the best channel whose limits for the population are within all budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from operator import attrgetter

import numpy as np
from scipy.special import ndtri

from .._typing import BoolArray, FloatArray, IntArray
from ..channels import Merging, merged_to, tidied
from ..geometry import Points, normalised
from ..solvers.linear_program import MixtureProgram
from ..solvers.several_secrets import side_by_side
from ..utilities import Utility
from .cone_program import ConeProgram, RobustBudget
from .limits import BudgetUse

# Up to this many symbols, every subset of them is a block.
_ALL_SUBSETS = 9

# Weights of what merged blocks reveal about S.
_CAUTIONS = (0.0, 25.0, 75.0)

# Costs are compared to this many digits: which one is smallest must not depend on rounding.
_DIGITS = 9


def blocks(joint: FloatArray, symbols: BoolArray) -> FloatArray:
    """Return P(X | block) for all blocks of some symbols, or for singles, pairs and greedy merges.

    joint : P(S, X).
    """
    places = np.flatnonzero(symbols).tolist()
    if len(places) <= _ALL_SUBSETS:
        chosen = [block for n in range(1, len(places)) for block in combinations(places, n)]
    else:
        merged = [block for caution in _CAUTIONS for block in _merges(joint, places, caution)]
        few = [block for n in (1, 2) for block in combinations(places, n)]
        chosen = list(dict.fromkeys([*few, *merged]))
    p_x, points = joint.sum(axis=0), np.zeros((len(chosen), joint.shape[1]))
    for point, block in zip(points, chosen, strict=True):
        point[list(block)] = p_x[list(block)]
    return normalised(points)


def _merges(joint: FloatArray, places: list[int], caution: float) -> Iterable[tuple[int, ...]]:
    """Yield the blocks from merging the rarest block with another one, until two are left.

    The other one minimises the loss of information on X, plus what both together reveal about S.
    """
    members: list[tuple[int, ...]] = [(x,) for x in places]
    p_s, parts = joint.sum(axis=1), joint[:, places].T
    while len(members) > 2:
        shares = parts.sum(axis=1)
        rarest = int(np.round(shares, _DIGITS).argmin())
        both = parts + parts[rarest]
        share = shares / both.sum(axis=1)
        lost = -both.sum(axis=1) * (share * np.log(share) + (1 - share) * np.log1p(-share))
        apart = (both / both.sum(axis=1, keepdims=True) - p_s) ** 2 @ (1 / p_s)
        cost = np.round(lost + caution * both.sum(axis=1) * apart, _DIGITS)
        cost[rarest] = np.inf
        other = int(cost.argmin())
        parts[other] = both[other]
        members[other] = tuple(sorted(members[other] + members[rarest]))
        yield members[other]
        del members[rarest]
        parts = np.delete(parts, rarest, axis=0)


# The search. -------------------------------------------------------------------------------------
#
# Outputs are within their budgets with a margin ``beta noise``, calibrated by the limits of the
# whole channel. For a loss of labels the best such channel is a convex program. Any other utility
# is convex in the posteriors: with its slopes at some posteriors as losses, the same program finds
# a channel with a larger utility, until nothing is gained.


# Grid of betas: half a per cent; of shapes: two per cent. They are the same on every processor.
_GRID, _COARSE_GRID = 200, 50

# A channel is calibrated when its limit is this close to the budget. After this many programs, or
# if the ratio of betas is this small, the best two channels are mixed, in this many steps. A
# channel that is a little over the budgets is mixed with that for a beta larger by _LARGER_BETA.
_CLOSE, _MOST_PROGRAMS, _NEXT_BETA, _LARGER_BETA, _MIXTURES = 0.9995, 8, 1.025, 1.02, 6
_SAME = 1e-7

# With many symbols the margins that limits ask for are about this share of the first guess.
_SMALLER_BETA = 0.88

# Number of steps with new slopes, (at first, later), and with so many symbols that programs take
# most of the time; and the share of the utility that is worth another step.
_STEPS, _STEPS_WITH_MANY, _SMALL_GAIN = (6, 4), (4, 2), 1e-5

# Shares of the budgets for which designs for the sample start the search. With more symbols, only
# one: the first of these that exists. Labels that a design for a smaller budget lacks are lost.
_START_SHARES, _SMALLEST_SHARES, _SMALLEST_SHARES_FOR_LABELS = (
    (1.0, 0.5, 0.25), (0.25, 0.5, 1.0), (0.5, 1.0)
)  # fmt: skip

# Smaller P(y|x) do not count as a pair of symbol and output.
_NEGLIGIBLE = 1e-6

# Outputs rarer than this are merged into others: the tolerances of programs spoil them.
_RAREST = 1e-4

# With more symbols than this, programs take most of the time: there is one start and one attempt.
# A start keeps outputs for this share of the symbols, and on a path for this many times as many as
# the last budget needed, which leads to designs that keep as much.
_MANY_SYMBOLS, _SHARE_OF_OUTPUTS, _MORE_OUTPUTS = 64, 0.75, 1.6

# Gain, as a share of the utility, for which a change is kept, and the most changes in a row: with
# few symbols, with more, and if programs start from X itself.
_WORTH_A_CHANGE, _MOST_CHANGES, _CHANGES_WITH_MORE, _CHANGES_FROM_X = 2e-4, 6, 2, 1

# Up to this many outputs, merging each of them is tried.
_FEW_OUTPUTS = 8

# A budget of which an output uses more than this is binding.
_BINDING = 0.97

# Up to this many symbols, several designs start the search. Rounds of it: with few symbols, and
# with more of them.
_FEW_SYMBOLS, _ROUNDS, _ROUNDS_WITH_MORE = 24, 3, 2

# Number of bisections between a centre and a point, to find where margins end.
_HALVINGS = 25

# Outputs of a mixture are merged as long as that costs less than this share of the utility.
_TIDY = 1e-3


@dataclass(frozen=True, eq=False)
class _Trial:
    """The channel for a beta, before rare outputs are merged, and its limit."""

    beta: float
    limit: float
    channel: FloatArray


@dataclass(frozen=True, eq=False)
class _Ends:
    """Two trials, within the budgets and beyond them, with the same outputs.

    strata, losses, shape : of these outputs.
    """

    within: _Trial
    beyond: _Trial | None
    strata: IntArray
    losses: FloatArray
    shape: FloatArray


@dataclass(frozen=True, eq=False)
class Attempt:
    """A channel whose limits are within the budgets.

    use : of the budgets by the channel; beta, shape : its margins are ``beta shape``, for each
    secret and output; ends : what it is a mixture of.
    """

    channel: FloatArray
    utility: float
    use: BudgetUse
    beta: float
    shape: FloatArray
    ends: _Ends


_by_utility = attrgetter("utility")


class ConfidentSearch:
    """The search for one set of budgets.

    budgets : of the secrets; use : returns the use of the budgets by a channel; utility : what is
    maximised; strata : the stratum of each symbol.
    """

    def __init__(
        self,
        budgets: Sequence[RobustBudget],
        use: Callable[[FloatArray], BudgetUse],
        utility: Utility,
        strata: IntArray,
        max_outputs: int | None = None,
    ) -> None:
        self._budgets, self._use, self._utility = budgets, use, utility
        self._strata, self._max_outputs = strata, max_outputs
        self._p_x, self._n_x = budgets[0].p_x, len(strata)
        as_loss = utility.as_loss(self._n_x)
        self._loss = None if as_loss is None else as_loss[0]
        self._span = utility.span(self._p_x)
        self._root_n = np.sqrt(budgets[0].n_rows)
        self._has_few = self._n_x <= _FEW_SYMBOLS
        self._has_many = self._n_x > _MANY_SYMBOLS
        self._first_steps, self._later_steps = _STEPS_WITH_MANY if self._has_many else _STEPS
        self._most_changes = _MOST_CHANGES if self._has_few else _CHANGES_WITH_MORE
        # With more symbols and two groups, mergers take as long as all else, and gain nothing.
        self._tries_mergers = self._has_few or not all(each.is_exact for each in budgets)

    def run(
        self,
        confidence: float,
        design_for: Callable[[float], FloatArray | None],
        near: Attempt | None = None,
    ) -> Attempt | None:
        """Return the best attempt.

        design_for : returns a design for a share of the budgets, or None if there is none; near :
        the best attempt for a similar budget, whose margins and outputs are tried first.
        """
        z = 0.15 + float(ndtri(1 - 2 * (1 - confidence) / max(self._n_x, 2.1)))
        beta = z / self._root_n if near is None else near.beta
        designs = self._designs(design_for)
        if self._loss is not None and (self._has_few or not designs):
            # A label belongs to the stratum of the symbol it is best for.
            best = self._calibrated(self._loss.T, self._strata[self._loss.argmin(axis=0)], beta)
        else:
            best = self._from_starts(designs, beta, near)
        return None if best is None else self._improved(best)

    def _designs(self, design_for: Callable[[float], FloatArray | None]) -> list[FloatArray]:
        """Return the designs to start from: with few symbols all, with many one."""
        shares: tuple[float, ...]
        if self._has_few:
            shares = _START_SHARES if self._loss is None else ()
        else:
            shares = _SMALLEST_SHARES if self._loss is None else _SMALLEST_SHARES_FOR_LABELS
        designs = (each for each in map(design_for, shares) if each is not None)
        return list(designs if self._has_few else islice(designs, 1))

    def again(self, attempt: Attempt) -> Attempt | None:
        """Return an attempt calibrated again, after limits have changed."""
        if self._has_few:
            return self._attempt_from(attempt.channel, attempt.beta, attempt.shape)
        use = self._use(attempt.channel)
        if use.limit <= 1:
            return replace(attempt, use=use)
        ends = attempt.ends
        within = self._limited_again(ends.within, ends)
        if within.limit <= 1:
            beyond = ends.beyond and self._limited_again(ends.beyond, ends)
            return self._mixed(replace(ends, within=within, beyond=beyond))
        self._first_steps = self._later_steps
        known = _Trial(attempt.beta, use.limit, attempt.channel)
        beta = _LARGER_BETA * attempt.beta
        return self._attempt_from(attempt.channel, beta, attempt.shape, known)

    def _limited_again(self, trial: _Trial, ends: _Ends) -> _Trial:
        """Return a trial with its limit as it is now."""
        _, use, _ = self._judged(trial.channel, ends.strata, ends.losses)
        return replace(trial, limit=use.limit)

    # Programs -----------------------------------------------------------------------------------

    def _losses(self, channel: FloatArray) -> FloatArray:
        """Return minus the slopes of the utility at the posteriors, one row per output."""
        return -self._utility.slope(Points.from_dense(self._posteriors(channel)), self._n_x)

    def _posteriors(self, channel: FloatArray) -> FloatArray:
        joint = (self._p_x[:, None] * channel).T
        p_y = joint.sum(axis=1, keepdims=True)
        return np.where(p_y > 0, joint / np.where(p_y > 0, p_y, 1.0), self._p_x)

    def _strata_of(self, channel: FloatArray) -> IntArray:
        return self._strata[channel.argmax(axis=0)]

    def _utility_of(self, channel: FloatArray) -> float:
        return self._utility.of_channel(self._p_x, channel)

    def _program(self, strata: IntArray, channel: FloatArray | None = None) -> ConeProgram:
        known = None if channel is None else channel > _NEGLIGIBLE
        return ConeProgram(self._budgets, self._strata[:, None] == strata, known)

    def _ascended(
        self, program: ConeProgram, losses: FloatArray, betas: FloatArray, most: int
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return a channel that no further step improves, and the losses at its posteriors."""
        best, largest = None, -np.inf
        for i in range(most):
            # The slopes will change again: pairs that are still missing can wait for that.
            waits = 0 < i < most - 1 and self._has_many
            channel = program.solve(losses.T, betas, adds_pairs=not waits)
            if channel is None or (utility := self._utility_of(channel)) <= largest:
                break
            gain, best, largest = utility - largest, channel, utility
            if self._loss is not None or gain < _SMALL_GAIN * self._span:
                break
            used = self._p_x @ channel > _RAREST
            losses = np.where(used[:, None], self._losses(channel), losses)
        return best, losses

    def _margins(self, strata: IntArray, beta: float, shape: FloatArray) -> FloatArray:
        """Return beta for each secret and output, so that the stratum itself stays in budget."""
        present, places = np.unique(strata, return_inverse=True)
        centres, margins = (self._strata[:, None] == present).astype(float), []
        for budget, factors in zip(self._budgets, shape, strict=True):
            gauge, noise = budget.parts(centres, beta)
            most = np.where(noise > 1e-9, 0.999 * (1 - gauge) / np.maximum(noise, 1e-9), np.inf)
            margins.append(np.minimum(beta * factors, most[places]))
        return np.maximum(margins, 0.0)

    # Calibration --------------------------------------------------------------------------------

    def _calibrated(
        self,
        losses: FloatArray,
        strata: IntArray,
        beta: float,
        shape: FloatArray | None = None,
        start: FloatArray | None = None,
        beyond: _Trial | None = None,
    ) -> Attempt | None:
        """Return the channel whose limit is just within the budgets.

        losses, strata, shape : of outputs; start : a similar channel, if there is one; beyond : a
        trial with these outputs that exceeds the budgets, if one is known.
        """
        shape = np.ones((len(self._budgets), len(strata))) if shape is None else shape
        program, within, before = self._program(strata, start), None, beyond
        tried: set[float] = set()
        for i in range(_MOST_PROGRAMS):
            beta = float(_on_grid(beta, _GRID))
            if beta in tried:
                break
            tried.add(beta)
            margins = self._margins(strata, beta, shape)
            steps = self._later_steps if i else self._first_steps
            channel, losses = self._ascended(program, losses, margins, steps)
            if channel is None:
                beta *= 1.1
                continue
            found = _Trial(beta, self._judged(channel, strata, losses)[1].limit, channel)
            # If another beta has the same limit, no margin is binding.
            is_same = within is not None and abs(within.limit - found.limit) < _SAME
            if found.limit > 1:
                beyond = found if beyond is None or beta > beyond.beta else beyond
            elif within is None or beta < within.beta:
                within = found
            if _CLOSE <= found.limit <= 1 or is_same:
                break
            if within and beyond and within.beta < _NEXT_BETA * beyond.beta:
                break
            beta, before = _next_beta(found, within, beyond, before), found
        if within is None:
            return None
        return self._mixed(_Ends(within, beyond, strata, losses, shape))

    def _mixed(self, ends: _Ends) -> Attempt:
        """Return a mixture of two channels, output by output, that is just within the budgets."""
        within, beyond, outputs = ends.within, ends.beyond, (ends.strata, ends.losses)
        best = self._judged(within.channel, *outputs)
        if beyond is not None and within.limit < _CLOSE:
            low, high = (0.0, within.limit), (1.0, beyond.limit)
            for _ in range(_MIXTURES):
                part = ((1 + _CLOSE) / 2 - low[1]) / max(high[1] - low[1], 1e-12)
                share = low[0] + float(np.clip(part, 0.05, 0.95)) * (high[0] - low[0])
                mixed = (1 - share) * within.channel + share * beyond.channel
                found = self._judged(mixed, *outputs)
                if (limit := found[1].limit) > 1:
                    high = share, limit
                    continue
                low, best = (share, limit), found
                if limit >= _CLOSE:
                    break
        channel, use, kept = best
        shape = ends.shape[:, kept]
        return Attempt(channel, self._utility_of(channel), use, within.beta, shape, ends)

    def _judged(
        self, channel: FloatArray, strata: IntArray, losses: FloatArray
    ) -> tuple[FloatArray, BudgetUse, IntArray]:
        """Return the channel without rare outputs, its limits, and which outputs are left.

        losses : of outputs. A rare output joins the one in its stratum with the smallest loss.
        """
        kept = self._p_x @ channel >= _RAREST
        channel = channel.copy()
        for y in np.flatnonzero(~kept):
            others = np.flatnonzero(kept & (strata == strata[y]))
            if not len(others):
                kept[y] = True
                continue
            cost = losses[others] @ (self._p_x * channel[:, y])
            channel[:, others[cost.argmin()]] += channel[:, y]
        channel, places = normalised(channel[:, kept]), np.flatnonzero(kept)
        if self._max_outputs is not None and channel.shape[1] > self._max_outputs:
            channel = merged_to(channel, self._p_x, self._utility, self._max_outputs, self._strata)
            places = places[: channel.shape[1]]
        return channel, self._use(channel), places

    # Changes ------------------------------------------------------------------------------------

    def _improved(self, best: Attempt) -> Attempt:
        """Return the best attempt with other margins of its outputs, or with fewer outputs."""
        for _ in range(self._most_changes):
            # The merger with the largest utility for its limit.
            merged = list(self._mergers(best)) if self._tries_mergers else []
            fewer = max(merged, key=lambda one: self._promise(*one)) if merged else None
            changed = [self._reshaped(best), fewer and self._attempt_from(*fewer)]
            new = max(filter(None, changed), key=_by_utility, default=best)
            if new.utility < best.utility + _WORTH_A_CHANGE * self._span:
                return max(best, new, key=_by_utility)
            best = new
        return best

    def _attempt_from(
        self,
        channel: FloatArray,
        beta: float,
        shape: FloatArray | None = None,
        beyond: _Trial | None = None,
    ) -> Attempt | None:
        """Return the attempt that starts from a channel; beyond : as in `_calibrated`."""
        losses, strata = self._losses(channel), self._strata_of(channel)
        return self._calibrated(losses, strata, beta, shape, channel, beyond)

    def _reshaped(self, attempt: Attempt) -> Attempt | None:
        """Return the attempt in which each output has the margin that its limit needs."""
        needed = np.full(attempt.shape.shape, np.nan)
        for j, budget in enumerate(self._budgets):
            betas = attempt.beta * attempt.shape[j]
            gauge, noise = budget.parts(attempt.channel, betas)
            binding = (gauge + betas * noise > _BINDING) & (noise > 0)
            needed[j, binding] = (attempt.use.per_output[j] - gauge)[binding] / noise[binding]
        if not np.isfinite(needed).any() or not (middle := np.nanmedian(needed)) > 0:
            return None
        relative = np.clip(np.where(np.isfinite(needed), needed / middle, 1.0), 0.5, 2.0)
        return self._attempt_from(attempt.channel, attempt.beta, _on_grid(relative, _COARSE_GRID))

    def _mergers(self, attempt: Attempt) -> Iterator[tuple[FloatArray, float, FloatArray]]:
        """Yield (channel, beta, shape) with one output merged with another, for each output.

        If there are many outputs, a tenth of them is merged at once.
        """
        merging = Merging(attempt.channel, self._p_x, self._utility, self._strata)
        n_outputs, shape = len(merging), attempt.shape
        if n_outputs > _FEW_OUTPUTS:
            for _ in range(n_outputs // 10):
                shape = np.delete(shape, merging.merge(), axis=1)
            yield merging.channel, attempt.beta, shape
            return
        for kept, gone in merging.cheapest_pairs() if n_outputs > 2 else ():
            channel = attempt.channel.copy()
            channel[:, kept] += channel[:, gone]
            yield np.delete(channel, [gone], 1), attempt.beta, np.delete(shape, [gone], 1)

    def _promise(self, channel: FloatArray, beta: float, shape: FloatArray) -> float:
        """Return the utility after one step from a channel, relative to its limit."""
        losses, strata = self._losses(channel), self._strata_of(channel)
        margins = self._margins(strata, beta, shape)
        found, losses = self._ascended(self._program(strata, channel), losses, margins, 1)
        if found is None:
            return -np.inf
        channel, use, _ = self._judged(found, strata, losses)
        gain = self._utility_of(channel) - self._utility.smallest(self._p_x)
        return gain / max(use.limit, 1e-3)

    # Utilities other than a loss of labels ------------------------------------------------------

    def _from_starts(
        self, starts: list[FloatArray], beta: float, near: Attempt | None
    ) -> Attempt | None:
        """Return the best attempt from several starts, and from blocks of symbols."""
        if not self._has_few and (self._has_many or not starts or self._loss is not None):
            return self._from_start(starts[-1] if starts else None, beta, near)
        rounds = _ROUNDS if self._has_few else _ROUNDS_WITH_MORE
        if self._has_few:
            starts = [*starts, self._mostly_unchanged()]
        if near is not None:
            starts, rounds = [*starts, near.channel], 1
        best: Attempt | None = None
        for _ in range(rounds):
            found = [self._ascended_from(start, beta) for start in starts]
            attempt = self._attempt_from(self._best_mixture(found, beta), beta)
            if attempt is None:
                return best
            if best and attempt.utility < best.utility + _WORTH_A_CHANGE * self._span:
                return max(best, attempt, key=_by_utility)
            best, beta = attempt, max(attempt.beta, 0.3 / self._root_n)
            starts = [*starts, best.channel]
        return best

    def _from_start(
        self, design: FloatArray | None, beta: float, near: Attempt | None
    ) -> Attempt | None:
        """Return the attempt from a design for the sample, or from X with some noise."""
        if design is None:
            self._most_changes = _CHANGES_FROM_X
            return self._attempt_from(self._ascended_from(self._mostly_unchanged(), beta), beta)
        # The outputs of a design for small budgets are near the best ones: programs for all
        # starts, or for other margins, take minutes and gain next to nothing.
        if self._loss is None and self._has_many:
            most = int(_SHARE_OF_OUTPUTS * self._n_x)
            if near is not None:  # a similar budget tells how many outputs are of use
                most = min(most, int(_MORE_OUTPUTS * near.channel.shape[1]))
            design = merged_to(design, self._p_x, self._utility, most, self._strata)
        self._most_changes, beta = 0, _SMALLER_BETA * beta if near is None else beta
        found = self._ascended_from(design, beta)
        self._first_steps = self._later_steps
        return self._attempt_from(found, beta)

    def _mostly_unchanged(self) -> FloatArray:
        """Return X with some noise, within its stratum."""
        nothing = (self._strata[:, None] == self._strata) * self._p_x
        return 0.9 * np.eye(self._n_x) + 0.1 * nothing / nothing.sum(axis=1, keepdims=True)

    def _ascended_from(self, channel: FloatArray, beta: float) -> FloatArray:
        """Return the channel that programs lead to from a channel; if none, a constant output."""
        strata = self._strata_of(channel)
        margins = self._margins(strata, beta, np.ones((len(self._budgets), len(strata))))
        start, program = self._losses(channel), self._program(strata, channel)
        found, _ = self._ascended(program, start, margins, self._first_steps)
        if found is None:
            return (self._strata[:, None] == np.unique(self._strata)).astype(float)
        return found[:, self._p_x @ found > _RAREST]

    def _best_mixture(self, found: list[FloatArray], beta: float) -> FloatArray:
        """Return the best mixture of the outputs of channels, and of blocks of symbols."""
        joint = np.vstack([budget.p_s[:, None] * budget.given_s for budget in self._budgets])
        parts, channels = [], []
        for stratum in np.unique(self._strata):
            symbols = self._strata == stratum
            centre = np.where(symbols, self._p_x, 0.0) / self._p_x[symbols].sum()
            outputs = [self._posteriors(c)[self._strata_of(c) == stratum] for c in found]
            outputs.append(blocks(joint / len(self._budgets), symbols))
            points = self._on_rays(np.vstack(outputs), centre, beta)[:, symbols]
            program = MixtureProgram(centre[symbols], self._utility.restricted(symbols))
            parts.append(symbols)
            channels.append(program.solve(Points.from_dense(points)).channel)
        channel, allowance = side_by_side(parts, channels), _TIDY * self._span
        return tidied(channel, self._p_x, self._utility, allowance, self._strata)

    def _on_rays(self, points: FloatArray, centre: FloatArray, beta: float) -> FloatArray:
        """Return points between the centre and `points`, as far out as the margins allow."""
        low = np.zeros(len(points))
        share = high = np.ones(len(points))
        for _ in range(_HALVINGS):
            channel = ((centre + share[:, None] * (points - centre)) / self._p_x).T
            within = np.all([budget.used(channel, beta) <= 1 for budget in self._budgets], axis=0)
            low, high = np.where(within, share, low), np.where(within, high, share)
            share = (low + high) / 2
        return centre + low[:, None] * (points - centre)


def _next_beta(
    found: _Trial, within: _Trial | None, beyond: _Trial | None, before: _Trial | None
) -> float:
    """Return the beta whose limit should equal the budget; before : tried before `found`."""
    if within and beyond:
        part = (beyond.limit - 1) / max(beyond.limit - within.limit, 1e-12)
        return beyond.beta + float(np.clip(part, 0.1, 0.9)) * (within.beta - beyond.beta)
    excess = found.limit - 1
    step = 2 * excess + 0.02 * (excess > 0)
    if before is not None and (before.limit - found.limit) * (found.beta - before.beta) > 0:
        fall = (before.limit - found.limit) / (found.beta - before.beta)
        step = 1.1 * excess / fall / found.beta
    low, high = (1.02, 2.5) if excess > 0 else (0.3, 0.97)
    return found.beta * float(np.clip(1 + step, low, high))


def _on_grid(values: FloatArray | float, n: int) -> FloatArray:
    """Return values rounded to a logarithmic grid, with n steps per unit."""
    return np.exp(np.round(np.log(values) * n) / n)
