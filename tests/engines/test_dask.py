"""Frames of Dask, on its own schedulers and on a real cluster."""

import os
import signal
import time
from contextlib import nullcontext
from multiprocessing import parent_process

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, futures_of, wait
from distributed.protocol import pickle
from engine_checks import EngineChecks, plain, rows_to_release
from example_tables import funnel, people
from scripts import run_script

from skprivacy import PrivacyLeakWarning
from skprivacy.engines.dask_frames import count_part, merge_tallies
from skprivacy.metrics import leakage

# Of Dask itself, with a pandas that is newer than it.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


class TestDask(EngineChecks):
    def lazily(self, rows, n):
        return dd.from_pandas(rows.reset_index(drop=True), npartitions=n, sort=False)

    def collected(self, lazy):
        return lazy.compute()

    def only(self, lazy, name, value):
        return lazy[lazy[name] == value]

    def test_types_come_back(self):
        with dask.config.set({"dataframe.convert-string": False}):  # of dates as well
            super().test_types_come_back()

    def test_types_and_index_are_those_that_were_promised(self, rows):
        rows.index = pd.Index(np.arange(len(rows)) * 3, name="row")
        lazy = dd.from_pandas(rows, npartitions=3)
        for output in ("label", "symbol", "posterior"):
            fitted = funnel(output=output, columns=["maybe", "noise"]).fit(lazy)
            released = fitted.transform(lazy)
            computed = released.compute()
            assert released.dtypes.equals(computed.dtypes)
            assert computed.index.equals(rows.index)
            assert released.divisions == lazy.divisions

    def test_an_index_is_judged_by_its_order(self, rows):
        rows = rows.sort_values("sex", ignore_index=True)
        rows.index = pd.Index(np.arange(len(rows)) * 3, name="row")
        with pytest.warns(PrivacyLeakWarning, match=r"index .* more about S .* \(row\)"):
            funnel().fit(dd.from_pandas(rows, npartitions=3))

    def test_the_categories_of_a_partition_are_those_of_the_mechanism(self, rows):
        frame = rows.assign(band=rows["band"].astype("category")).sort_values("band")
        fitted = funnel(0.0).fit(dd.from_pandas(frame, npartitions=3, sort=False))
        parts = [frame[frame["band"] == band] for band in "abc"]
        parts = [p.assign(band=p["band"].cat.remove_unused_categories()) for p in parts]
        lazy = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts])
        released = fitted.transform(lazy)
        assert released["band"].dtype.categories.tolist() == list("abcde")
        for i in range(lazy.npartitions):
            found = released.partitions[i].compute()["band"]
            assert found.cat.categories.tolist() == list("abcde")

    def test_an_index_that_holds_s_is_refused(self, rows):
        fitted = funnel().fit(dd.from_pandas(rows, npartitions=2))
        by_name = dd.from_pandas(rows.set_index("sex", drop=False), npartitions=2, sort=False)
        with pytest.raises(ValueError, match="The index of X holds a sensitive column"):
            funnel().fit(by_name)
        with pytest.raises(ValueError, match="The index of X holds a sensitive column"):
            fitted.transform(by_name[["band"]]).compute()
        copy = rows.set_axis(pd.Index(rows["sex"].to_numpy(), name="row"))
        for sort in (False, True):  # sorted, each partition has a single value
            with pytest.raises(ValueError, match="The index of X holds a sensitive column"):
                funnel().fit(dd.from_pandas(copy, npartitions=2, sort=sort))
        coded = rows.assign(sex=(rows["sex"] == "f").astype(int))
        coded = coded.set_axis(pd.Index(coded["sex"].to_numpy()))
        with pytest.raises(ValueError, match="The index of X holds a sensitive column"):
            funnel().fit(dd.from_pandas(coded, npartitions=2, sort=False))

    def test_a_part_of_a_release_is_a_part_of_it(self, rows, tmp_path):
        # Dask fuses the partitions of a file with many columns when few of them are read.
        dd.from_pandas(rows, npartitions=6).to_parquet(tmp_path)
        lazy = dd.read_parquet(tmp_path)
        lengths = lazy[["band"]].map_partitions(len)
        assert lengths.optimize().npartitions < lazy.npartitions == 6
        released = funnel(random_state=None).fit(lazy).transform(lazy)
        whole = plain(released.compute())
        parts = [released.partitions[i].compute() for i in range(6)]
        assert plain(pd.concat(parts)).equals(whole)
        assert plain(released.tail(5)).equals(plain(parts[-1].tail(5)))
        counts = released["band"].value_counts().compute().to_dict()
        assert counts == whole["band"].value_counts().to_dict()
        two = released.repartition(npartitions=2).compute(scheduler="synchronous")
        assert plain(two).equals(whole)

    @pytest.mark.parametrize(
        "change",
        [
            lambda f: f[f["id"] > 1000],
            lambda f: f.rename(columns={"noise": "other"}),
            lambda f: f.astype({"band": "category"}),
            lambda f: f.repartition(partition_size="20kB"),
            lambda f: f.groupby(["sex", "band"]).size().reset_index(),
            lambda f: f.assign(zip=f["zip"] + 1).dropna(),
        ],
        ids=["filter", "rename", "astype", "repartition", "groupby", "assign"],
    )
    def test_queries_before_it(self, rows, tmp_path, change):
        dd.from_pandas(rows, npartitions=6).to_parquet(tmp_path)
        lazy = change(dd.read_parquet(tmp_path))
        fitted = funnel(random_state=None).fit(rows)
        released = fitted.transform(lazy)
        whole = released.compute()
        assert len(whole) == len(lazy)
        assert plain(released.compute(scheduler="synchronous")).equals(plain(whole))
        parts = [released.partitions[i].compute() for i in range(released.npartitions)]
        assert plain(pd.concat(parts)).equals(plain(whole))

    def test_merging_counts_again_counts_the_same(self, rows):
        tallies = [count_part(rows, names=["sex", "band"], edges={}, limit=99) for _ in range(3)]
        assert (
            merge_tallies(tallies).counts.sum()
            == merge_tallies(tallies).counts.sum()
            == 3 * len(rows)
        )

    def test_categories_and_empty_partitions(self, rows):
        rows["band"] = rows["band"].astype("category")
        lazy = dd.from_pandas(rows, npartitions=4)
        some = lazy[lazy["id"] < 1500]  # the last partitions are empty
        here = funnel().fit(rows[rows["id"] < 1500].reset_index(drop=True))
        there = funnel().fit(some)
        assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
        assert len(there.transform(some).compute()) == 1500
        unknown = lazy.assign(band=lazy["band"].cat.as_unknown())
        assert funnel().fit(unknown).p_sx_.tobytes() == funnel().fit(rows).p_sx_.tobytes()

    @pytest.mark.parametrize(
        "scheduler",
        ["threads", pytest.param("processes", marks=pytest.mark.slow)],  # as on the cluster below
    )
    def test_schedulers_agree(self, rows, scheduler):
        released = funnel().fit(rows).transform(self.lazily(rows, 5))
        first = released.compute(scheduler="synchronous")
        assert first.equals(released.compute(scheduler=scheduler))

    def test_neither_key_nor_joint_is_in_the_graph(self, rows):
        fitted = funnel().fit(rows)
        secret = b"a secret that is not to be seen!"
        released = fitted.transform(self.lazily(rows, 2), record_ids="id", secret_key=secret)
        graph = dict(released.optimize().__dask_graph__())
        pickled = pickle.dumps(graph)
        assert b"band" in pickled
        assert secret not in pickled
        assert fitted.p_sx_.tobytes() not in pickled


@pytest.fixture(scope="module")
def client():
    options = {"dashboard_address": ":0", "memory_limit": "2GB", "silence_logs": 50}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def slow_part(number):
    if parent_process():  # on a worker, which is to die in the middle
        time.sleep(0.1)
    return people(10_000, seed=number)[["sex", "band"]].assign(part=number)


def kill_a_worker(client):
    victim = sorted(client.run(os.getpid).values())[0]
    os.kill(victim, signal.SIGKILL)


# Of connections to workers that are killed.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestCluster:
    def slow_frame(self):
        return dd.from_map(slow_part, range(24))

    def expected(self, released):
        """Return all rows, computed where no worker dies."""
        with dask.config.set(scheduler="synchronous"):
            return released.compute()

    @pytest.mark.slow
    def test_the_benchmark_runs(self, client, monkeypatch, capsys):
        # On the cluster that is there: a new one takes longer to start than all the rest.
        monkeypatch.setattr("distributed.LocalCluster", lambda **_: nullcontext(client.cluster))
        run_script("benchmarks/dask_and_spark.py", "--rows", "100000", "--engines", "dask")
        assert "all 100,000 ids are there once" in capsys.readouterr().out

    @pytest.mark.slow
    def test_a_worker_dies_in_the_middle_of_a_transform(self, client):
        lazy = self.slow_frame()
        fitted = funnel(0.01).fit(lazy)
        assert fitted.n_samples_seen_ == 240_000
        released = fitted.transform(lazy)
        running = client.persist(released)
        partitions = futures_of(running)
        while sum(part.done() for part in partitions) < 8:
            time.sleep(0.05)
        assert not all(part.done() for part in partitions)
        kill_a_worker(client)
        result = running.compute()
        assert len(result) == 240_000
        assert plain(result).equals(plain(self.expected(released)))
        sex = np.concatenate([slow_part(i)["sex"].to_numpy() for i in range(24)])
        assert leakage(sex, result["band"].to_numpy()) == pytest.approx(0.01, rel=0.4)

    def test_partitions_that_are_lost_are_drawn_again_as_they_were(self, client):
        lazy = self.slow_frame().partitions[:4]
        fitted = funnel(0.01, random_state=None).fit(rows_to_release())
        released = client.persist(fitted.transform(lazy))
        wait(released)
        before = released.compute()
        kill_a_worker(client)
        assert plain(released.compute()).equals(plain(before))
