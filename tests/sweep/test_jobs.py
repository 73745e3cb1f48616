"""Workers in jobs of a batch system: the file, the job script, and points in jobs that run on this machine."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.sweep.api import run_sweep
from buddysim.sweep.certificates import RunCertificates
from buddysim.sweep.cluster import local_cluster
from buddysim.sweep.jobs import Jobs, make_cluster, read_jobs
from buddysim.sweep.study import StudyReader

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("dask_jobqueue") is None, reason="needs pip install 'buddysim[sweep]'"
)
ROOT = Path(__file__).parents[2]
FILE = """
jobs = 3
workers = 4
memory = "16 GB"
walltime = "02:00:00"
queue = "long"
account = "me"
interface = "lo"
log_folder = "my logs"
prologue = ["module load python"]
directives = ["--exclusive"]
"""


def test_the_job_script_asks_for_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(FILE)
    jobs = read_jobs(tmp_path / "jobs.toml")
    assert jobs.text == "3 slurm jobs of 4 workers"
    certificates = RunCertificates(tmp_path / "a store")
    cluster = make_cluster(jobs, certificates.security_of_jobs())
    try:
        script = cluster.job_script().splitlines()
        assert cluster.scheduler_address.startswith("tls://127.0.0.1:")
        assert "//127.0.0.1:" in cluster.dashboard_link
    finally:
        cluster.close()
        certificates.close()
    for line in ("#SBATCH -p long", "#SBATCH -A me", "#SBATCH --cpus-per-task=4", "#SBATCH --mem=15G",
                 "#SBATCH -t 02:00:00", "#SBATCH --exclusive", "#SBATCH -o 'my logs/dask-worker-%J.out'",
                 "module load python"):  # fmt: skip
        assert line in script, script
    (worker,) = [line for line in script if "dask worker" in line or "distributed.cli" in line]
    for option in ("--nthreads 1", "--nworkers 4"):
        assert option in worker
    assert "--preload buddysim.sweep.worker" in worker
    assert f"--protocol tls:// --tls-ca-file '{certificates.certificate}' --tls-cert '" in worker


def test_an_interface_that_this_computer_lacks_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text('jobs = 1\nmemory = "1 GB"\ninterface = "ib99"')
    trace = str(ROOT / "traces" / "lud256.bin")
    with pytest.raises(BuddysimError, match="'ib99' is not a valid network interface"):
        run_sweep(set={"trace": trace}, grid={"seed": [1, 2]}, store=tmp_path / "s", slurm=tmp_path / "jobs.toml")
    assert not (tmp_path / "s" / "certificates").exists()


def test_certificates_are_of_this_user_alone_and_end_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = RunCertificates(tmp_path)
    assert certificates.key.stat().st_mode & 0o077 == 0
    assert certificates.key.parent.stat().st_mode & 0o077 == 0
    certificates.close()
    assert [*tmp_path.iterdir()] == []
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuddysimError, match="workers need the program openssl"):
        RunCertificates(tmp_path)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize("of_jobs", [True, False], ids=["jobs", "this computer"])
def test_a_scheduler_takes_nobody_without_its_certificate(of_jobs: bool, tmp_path: Path) -> None:
    from distributed import Client

    certificates = RunCertificates(tmp_path)
    if of_jobs:
        cluster = make_cluster(Jobs(jobs=1, memory="1 GB", system="local"), certificates.security_of_jobs())
    else:
        cluster = local_cluster(1, certificates.security())
    other = RunCertificates(tmp_path)
    address = cluster.scheduler_address
    try:
        with Client(address, timeout=10, security=certificates.security(), set_as_default=False) as client:
            assert client.status == "running"
        for where, security in ((address, other.security()), (address.replace("tls", "tcp"), None)):
            with pytest.raises(OSError, match=r"certificate|Connection"):
                Client(where, timeout=1, security=security, set_as_default=False)
    finally:
        cluster.close()
        certificates.close()
        other.close()


def test_a_sweep_on_this_computer_has_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other user of a login node could run code as its owner without them."""
    requested: list[Any] = []

    def refuse(workers: int, security: Any) -> Any:
        requested.append(security)
        raise RuntimeError("no workers here")

    monkeypatch.setattr("buddysim.sweep.cluster.local_cluster", refuse)
    trace = str(ROOT / "traces" / "lud256.bin")
    with pytest.raises(BuddysimError, match="no workers here"):
        run_sweep(set={"trace": trace}, grid={"seed": [1, 2]}, store=tmp_path / "s", workers=2)
    assert requested[0].require_encryption
    assert requested[0].tls_scheduler_cert
    assert not (tmp_path / "s" / "certificates").exists()


def test_no_signal_to_a_sweep_ends_the_tracker_of_its_resources() -> None:
    program = (
        "from buddysim.sweep.cluster import start_tracker; start_tracker()\n"
        "from multiprocessing import resource_tracker as t\n"
        "print(open(f'/proc/{t._resource_tracker._pid}/status').read())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    (mask,) = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("SigBlk")]
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        assert int(mask, 16) >> number - 1 & 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('wal_time = "1"', "nearest: walltime"),
        ("jobs = 0", "jobs: expected at least 1, got 0"),
        ('memory = ""', "memory: expected a text that isn't empty"),
        ("directives = 3", "directives: expected a list, got 3"),
        ('system = "pbs"', "system: expected one of slurm, local, got 'pbs'"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path, change: str, expected: str) -> None:
    key = change.partition(" ")[0]
    remaining = [line for line in FILE.splitlines() if line.partition(" ")[0] != key]
    (tmp_path / "jobs.toml").write_text("\n".join([*remaining, change]))
    with pytest.raises(BuddysimError, match=expected):
        read_jobs(tmp_path / "jobs.toml")
    (tmp_path / "open.toml").write_text('jobs = 1\nmemory = "1 GB"')
    with pytest.raises(BuddysimError, match="interface is missing: expected the network of the jobs alone"):
        read_jobs(tmp_path / "open.toml")
    (tmp_path / "less.toml").write_text('memory = "1 GB"')
    with pytest.raises(BuddysimError, match="jobs is missing"):
        read_jobs(tmp_path / "less.toml")


@pytest.mark.slow
def test_jobs_on_this_machine_run_the_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    jobs = tmp_path / "jobs.toml"
    folders = f'log_folder = "{tmp_path}"\nlocal_folder = "{tmp_path}"'
    jobs.write_text(f'system = "local"\njobs = 2\nmemory = "1 GB"\n{folders}')
    trace = str(ROOT / "traces" / "lud256.bin")
    results = run_sweep(set={"trace": trace}, grid={"seed": [1, 2, 3, 4]}, store=tmp_path / "s", slurm=jobs)
    assert results.summary.done == 4
    assert results.summary.failures == []
    workers = {record.measured["computer"] for record in results}
    assert workers
    assert Jobs(jobs=1, memory="1 GB").system == "slurm"


def _slurm_answers() -> bool:
    if shutil.which("sinfo") is None or shutil.which("sbatch") is None:
        return False
    nodes = subprocess.run(["sinfo", "-h", "-t", "idle,mix"], capture_output=True, text=True, check=False, timeout=20)
    return nodes.returncode == 0 and bool(nodes.stdout.strip())


@pytest.mark.slow
def test_a_slurm_that_is_there_runs_the_points_and_a_cancelled_job_costs_none(tmp_path: Path) -> None:
    if not _slurm_answers():
        pytest.skip("needs a Slurm with idle nodes (docs/how-to/run-on-a-cluster.md says how one machine becomes one)")
    jobs = tmp_path / "jobs.toml"
    folders = f'log_folder = "{tmp_path}"\nlocal_folder = "{tmp_path}"\nprologue = ["export PYTHONPATH={ROOT}"]'
    jobs.write_text(f'jobs = 2\nmemory = "2 GB"\nwalltime = "00:10:00"\ninterface = "lo"\n{folders}')
    cancelled: list[str] = []

    def cancel_one(event: Any) -> None:
        if event["event"] == "done" and not cancelled:
            listed = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i"], capture_output=True, text=True, check=True)
            running = listed.stdout.split()
            if len(running) == 2:
                cancelled.append(running[0])
                subprocess.run(["scancel", running[0]], check=True)

    trace = str(ROOT / "traces" / "lud256.bin")
    tables = {"set": {"trace": trace}, "grid": {"seed": list(range(60))}}
    results = run_sweep(StudyReader("t").read(tables), store=tmp_path / "s", slurm=jobs, on_event=cancel_one)
    assert results.summary.failures == []
    assert len(list(results)) == 60
    assert cancelled
