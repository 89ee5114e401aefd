"""Drawing Y."""

import pickle

import numpy as np
import pandas as pd
import pytest
from example_tables import make
from numpy.testing import assert_allclose

from skprivacy import design_mechanism
from skprivacy.design import design_task
from skprivacy.releasing.sampler import (
    Noise,
    RowNoise,
    Sampler,
    as_sampled,
    fresh_key,
    integer_boundaries,
    sampled_channel,
)
from skprivacy.solvers import DesignTask


class TestRandomness:
    def test_a_seed_repeats_and_none_does_not(self, frame):
        seeded = make(random_state=5).fit(frame)
        assert seeded.transform(frame).equals(seeded.transform(frame))
        assert not make(random_state=6).fit(frame).transform(frame).equals(seeded.transform(frame))
        fresh = make(random_state=None).fit(frame)
        assert not fresh.transform(frame).equals(fresh.transform(frame))

    @pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
    def test_generators_advance(self, frame, kind):
        first, second = (make(random_state=kind(1)).fit(frame) for _ in range(2))
        a, b = first.transform(frame), first.transform(frame)
        assert not a.equals(b)
        assert a.equals(second.transform(frame))

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    @pytest.mark.parametrize("columns", [["education"], ["education", "city"]])
    def test_transform_stores_nothing(self, frame, columns, output):
        transformer = make(random_state=None, columns=columns, output=output).fit(frame)
        before = pickle.dumps(transformer.__dict__)
        transformer.transform(frame)
        assert pickle.dumps(transformer.__dict__) == before

    def test_noise_is_independent_of_data_drawn_with_the_same_seed(self):
        rng = np.random.default_rng(0)
        s, x = rng.integers(0, 2, 50_000), rng.integers(0, 16, 50_000)
        transformer = make(0.0, sensitive=0, columns=1, n_bins=None).fit(np.column_stack([s, x]))
        table = np.column_stack([s, np.zeros_like(x)])
        drawn = np.bincount(transformer.transform(table)[:, 0].astype(int), minlength=16) / 50_000
        names = np.array(transformer.mechanism_.y_labels)
        assert_allclose(drawn[names], transformer.mechanism_.channel[0], atol=0.01)

    def test_invariance_in_distribution(self, frame):
        """Order and subsets change the draw of a row, not its distribution."""
        transformer = make(random_state=None).fit(frame)
        mechanism = transformer.mechanism_
        for part in (frame, frame[::-1], frame[::3]):
            big = pd.concat([part] * (400_000 // len(part)))
            released = transformer.transform(big)["education"].to_numpy()
            for x, label in enumerate(mechanism.x_labels):
                rows = released[big["education"].to_numpy() == label]
                share = pd.Series(rows).value_counts(normalize=True).reindex(mechanism.y_labels)
                assert_allclose(share.fillna(0), mechanism.channel[x], atol=0.01)


class TestSampler:
    def test_unknown_symbols_have_a_row_for_each_value_beside_x(self):
        channel = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0]])
        unknown = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]])
        symbols = np.repeat([-1, -2, 0, 1], 4000)
        noise = RowNoise(fresh_key(0), range(len(symbols)))
        drawn = Sampler(channel, unknown).draw(symbols, noise).reshape(4, -1)
        shares = np.array([np.bincount(part, minlength=4) / 4000 for part in drawn])
        assert np.abs(shares - np.vstack([unknown, channel])).max() < 0.03
        assert ((shares > 0) == (np.vstack([unknown, channel]) > 0)).all()

    def test_the_integer_table_is_what_is_sampled_and_keeps_the_budget(self):
        rng = np.random.default_rng(1)
        for epsilon in (0.0, 1e-6, 0.01, 0.3):
            for _ in range(20):
                joint = rng.random((3, 6)) * 10.0 ** -rng.integers(0, 9, size=(1, 6))
                budgets = {None: epsilon}
                asked = "test", joint, [epsilon], "max_lift", "per_output", "mutual_information"
                task = DesignTask.checked(*asked)
                mechanism = design_task(task, budgets, "test", "auto", {}, as_sampled=as_sampled)
                sampled = sampled_channel(integer_boundaries(mechanism.channel))
                assert (sampled == mechanism.channel).all()  # what is judged is what is drawn
                assert mechanism.max_leakage <= epsilon * (1 + 1e-9) + 1e-12

    def test_rounding_is_small_and_leaves_zeros_alone(self):
        channel = design_mechanism(np.random.default_rng(2).random((3, 6)), 0.01).channel
        sampled = as_sampled(channel)
        assert_allclose(sampled, channel, atol=2**-52)
        assert (sampled[channel == 0] == 0).all()
        assert (as_sampled(sampled) == sampled).all()

    def test_every_word_gives_the_output_of_its_interval(self):
        channel = np.array([[0.3, 0.0, 0.7], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        sampler = Sampler(channel, np.array([0.5, 0.25, 0.25]))
        words = np.array(
            [0, int(0.3 * 2**64) - 3000, int(0.3 * 2**64) + 3000, 2**64 - 1], dtype=np.uint64
        )

        class Given(Noise):
            def __len__(self):
                return 4

            def words(self, lane, start, stop):
                return words

        source = Given()
        assert sampler.draw(np.zeros(4, int), source).tolist() == [0, 0, 2, 2]
        assert sampler.draw(np.ones(4, int), source).tolist() == [0, 0, 0, 0]
        assert sampler.draw(np.full(4, 2), source).tolist() == [2, 2, 2, 2]
        assert sampler.draw(np.full(4, -1), source).tolist() == [0, 0, 0, 2]

    @pytest.mark.parametrize("seed", [0, None])
    def test_frequencies(self, seed):
        rng = np.random.default_rng(0)
        channel = rng.dirichlet(np.full(300, 0.1), size=40)
        sampler = Sampler(channel, channel.mean(axis=0))
        symbols = np.repeat(np.arange(-1, 40), 50_000)
        drawn = sampler.draw(symbols, RowNoise(fresh_key(seed), range(len(symbols))))
        counts = np.zeros((41, 300))
        np.add.at(counts, (symbols + 1, drawn), 1)
        expected = np.vstack([channel.mean(axis=0), channel]) * 50_000
        # Chi-squared per row against its degrees of freedom.
        statistic = np.where(expected > 5, (counts - expected) ** 2 / np.maximum(expected, 5), 0)
        freedom = (expected > 5).sum(axis=1)
        assert (np.abs(statistic.sum(axis=1) - freedom) < 6 * np.sqrt(2 * freedom) + 10).all()
        assert (counts[expected == 0] == 0).all()
