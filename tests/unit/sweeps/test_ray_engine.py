"""The Ray engine on a real cluster of two nodes, a worker killed in the middle."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_sweep import SLOWLY, attempts, small_sweep, trained_alone, trainer
from tiny_runs import tree

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps import RayEngine, run_sweep
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Job, Sweep
from interp_shortcuts.sweeps.table import results


@dataclass
class OnCluster:
    home: SweepFolder
    sweep: Sweep
    statuses: list[str]
    killed: Job
    nodes: int


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two nodes with one CPU each; the address of the cluster."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes()
        yield nodes.address
    finally:
        nodes.shutdown()


@pytest.fixture(scope="module")
def on_cluster(cluster: str, tmp_path_factory: pytest.TempPathFactory) -> OnCluster:
    home = SweepFolder(tmp_path_factory.mktemp("ray") / "small")
    sweep = small_sweep()
    killed: list[Job] = []

    def kill() -> None:
        job, pid = trainer(home, list(sweep.jobs))
        os.kill(pid, signal.SIGKILL)
        killed.append(job)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    engine = RayEngine(address=cluster)
    script = home.path.with_name("slowly.py")
    script.write_text(SLOWLY)
    with engine.session():
        slots = engine.slots
        ended = run_sweep(sweep, out=home.path, engine=engine, script=script, progress=False)
    killer.join(timeout=60)
    return OnCluster(home, sweep, [result.status for result in ended], killed[0], slots)


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_run_twice(on_cluster: OnCluster):
    assert on_cluster.statuses == ["finished", "finished"]
    assert list(results(on_cluster.home.path)["status"]) == ["finished", "finished"]
    for job in on_cluster.sweep.jobs:
        killed = job == on_cluster.killed
        assert attempts(on_cluster.home, job) == ["lost", "finished"] if killed else ["finished"]
        turns = Run.open(on_cluster.home.run_path(job)).manifest["resumed"]
        assert [turn["step"] >= 20 for turn in turns] == ([True] if killed else [])


@pytest.mark.slow
def test_both_nodes_take_part(on_cluster: OnCluster):
    assert on_cluster.nodes == 2
    logs = [on_cluster.home.attempts(job).read() for job in on_cluster.sweep.jobs]
    assert {attempt.engine for log in logs for attempt in log} == {"ray"}


@pytest.mark.slow
def test_the_bits_are_those_of_a_run_alone(on_cluster: OnCluster, tmp_path: Path):
    for job in on_cluster.sweep.jobs:
        alone = trained_alone(job.config, tmp_path / job.folder_name)
        assert tree(on_cluster.home.run_path(job)) == alone
        manifest = Run.open(on_cluster.home.run_path(job)).manifest
        assert manifest["threads"] == 1


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("interp_shortcuts.sweeps.ray_engine.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'interp-shortcuts\[ray\]'"):
        RayEngine().start()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workers": 0}, r"`workers` must be at least 1; got 0"),
        ({"num_gpus": -1}, r"`num_gpus` must be 0 or more; got -1"),
        ({"memory": 0}, r"`memory` \(in GiB\) must be above 0; got 0"),
        ({"num_cpus": 0}, r"`num_cpus` or `num_gpus` must be above 0"),
    ],
)
def test_impossible_resources_are_refused(fields: dict[str, int], message: str):
    with pytest.raises(ConfigError, match=message):
        RayEngine(**fields)
