"""How often certificates fail, and how close they are.

Run ``python benchmarks/certificate.py``; it uses one core and takes a minute or two. Populations
are known, so that it is known what a channel leaks. Channels are designed with some rows and
certified by others, by every measure, and the bounds are compared with the truth. All may fail in
5% of the samples. That of parity on average is close enough to fail in some of a thousand, and how
often it does is counted in more samples; the others, which allow for much more, must not fail.
"""

import argparse
import warnings
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from skprivacy import design_mechanism
from skprivacy.measures import MEASURES, get_measure
from skprivacy.population.certificate import Candidate, Centre, Terms, certify, largest_distance

EPSILON, N_DESIGNS, CONFIDENCE = 0.02, 10, 0.95


@dataclass
class Population:
    """A joint distribution, and how many rows are drawn from it: to design and to certify."""

    name: str
    p_sx: np.ndarray
    n_rows: int

    def counts(self, rng):
        """Return the counts of rows that were drawn, with every group among them."""
        while True:
            counts = rng.multinomial(self.n_rows, self.p_sx.ravel()).reshape(self.p_sx.shape)
            if counts.sum(axis=1).all():
                return counts.astype(float)

    def candidates(self, rng):
        """Yield designs, made with rows of their own; half of them with P(S) not known."""
        uniform = np.full(len(self.p_sx), 1 / len(self.p_sx))
        for i in range(N_DESIGNS):
            counts = self.counts(rng)
            seen = counts.sum(axis=0) > 0
            made = design_mechanism(counts[:, seen], EPSILON)
            channel = np.tile(made.p_y, (len(seen), 1))
            channel[seen] = made.channel
            prior = counts.sum(axis=1) / counts.sum() if i % 2 else uniform
            yield Candidate(channel, made.y_labels, "per_output", Centre(prior, made.p_y))


def populations():
    """Return the populations of the simulation."""
    rng = np.random.default_rng(0)
    for shape, n in [((2, 5), 300), ((2, 5), 3000), ((2, 30), 3000), ((3, 6), 3000)]:
        p_sx = rng.random(shape)
        yield Population(f"{shape[0]} x {shape[1]}, {n:,} rows", p_sx / p_sx.sum(), n)
    rare = rng.random((3, 5)) * [[0.03], [1], [1]]
    yield Population("a group of 1.5%, 3,000 rows", rare / rare.sum(), 3000)
    large = rng.random((4, 7))
    yield Population("4 x 7, 100,000 rows", large / large.sum(), 100_000)


def truth(population, candidate, measure):
    """Return what a channel leaks in the population: its worst output, and on average."""
    mechanism = design_mechanism(population.p_sx, 9, measure=measure, solver="watchdog")
    exact = mechanism.with_channel(candidate.channel)
    return exact.max_leakage, exact.average_leakage


def simulate(population, n_samples):
    """Return {measure: rows of bounds and truths, of the worst output and on average}."""
    rng = np.random.default_rng(1)
    measures = {name: get_measure(name) for name in MEASURES}
    candidates = list(population.candidates(rng))
    truths = [{n: truth(population, c, m) for n, m in measures.items()} for c in candidates]
    found = {name: [] for name in measures}
    for candidate, exact in islice(cycle(zip(candidates, truths, strict=True)), n_samples):
        counts = population.counts(rng)
        for name, measure in measures.items():
            got = certify(counts, candidate, Terms(measure, CONFIDENCE))
            found[name].append((got.max_leakage_bound, got.average_leakage_bound, *exact[name]))
    return {name: np.array(figures) for name, figures in found.items()}


def rate_of_parity(population, n_samples):
    """Return how often the bound of parity on average fails, in samples of their own."""
    rng, misses = np.random.default_rng(2), []
    for candidate in population.candidates(rng):
        channel, shape = candidate.channel, (n_samples // N_DESIGNS, *population.p_sx.shape)
        counts = rng.multinomial(population.n_rows, population.p_sx.ravel(), size=shape[0])
        counts = counts.reshape(shape)
        sizes = counts.sum(axis=2)
        counts, sizes = counts[sizes.all(axis=1)], sizes[sizes.all(axis=1)]
        given = counts @ channel / sizes[..., None]
        plug_in = np.ptp(given, axis=1).sum(axis=1) / 2
        margin = np.sqrt(np.log(1 / (1 - CONFIDENCE)) / 2 * (1 / sizes).sum(axis=1))
        bound = plug_in + largest_distance(channel) * margin
        misses.append(np.mean(bound < truth(population, candidate, get_measure("parity"))[1]))
    return np.mean(misses)


def main(n_samples):
    """Print the misses, and how far the bounds are from the truth."""
    all_populations, misses = list(populations()), {}
    share = -(-n_samples // len(all_populations))
    for population in all_populations:
        print(f"\n{population.name}: truth and median bound; misses")
        for name, figures in simulate(population, share).items():
            missed = (figures[:, :2] < figures[:, 2:]).sum(axis=0)  # NaN is no miss
            misses[name] = misses.get(name, 0) + missed
            worst, average, true_worst, true_average = np.median(figures, axis=0)
            print(
                f"  {name:<11} worst {true_worst:.4f} {worst:8.4f} {missed[0]:2}"
                f"   average {true_average:.4f} {average:8.4f} {missed[1]:2}"
            )
    n_samples = share * len(all_populations)
    of_parity = misses["parity"][1]
    others = sum(missed.sum() for missed in misses.values()) - of_parity
    print(f"\n{n_samples:,} samples: parity on average misses {of_parity}, the others {others}")
    print(f"parity on average, in {10 * n_samples:,} more samples of each population:")
    for population in all_populations:
        rate = rate_of_parity(population, 10 * n_samples)
        print(f"  {population.name:<28} misses {rate:.2%}")
        assert rate <= 1 - CONFIDENCE
    assert not others
    assert of_parity <= (1 - CONFIDENCE) * n_samples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    warnings.simplefilter("ignore")  # a budget that is large enough for all symbols
    main(parser.parse_args().samples)
