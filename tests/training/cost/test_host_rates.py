"""Times of the host's updates, by hand."""

import pytest

from buddysim.machine.training import TrainingMachine
from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.autograd.records import HostTask
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.optimizers import find_optimizer
from buddysim.training.options.optimizer_offload import OptimizerOffload

KEYS = {"training.host_memory_bandwidth": "100 GB/s", "training.host_cores": 8}


@pytest.mark.parametrize(
    ("overrides", "rate"),
    [
        (KEYS, 49 * 10**9),  # 0.49 of the memory's bandwidth
        ({**KEYS, "training.host_cores": 2}, 20 * 10**9),  # of two cores
        ({**KEYS, "training.host_memory_bandwidth": "1 GB/s"}, 490 * 10**6),
    ],
)
def test_memory_or_cores_bound_an_update(overrides: dict[str, object], rate: int):
    rates = HostRates.of(TrainingMachine.load("a100-80").with_overrides(overrides))
    assert rates.update == rate
    assert rates.task_ps(HostTask("update", rate)) == 10**12


def test_drives_have_rates_of_their_own():
    keys = {"training.nvme_read_bandwidth": "4 GB/s", "training.nvme_write_bandwidth": "2 GB/s"}
    rates = HostRates.of(TrainingMachine.load("a100-80").with_overrides(keys))
    assert rates.task_ps(HostTask("nvme_read", 10**9)) == 250 * 10**9
    assert rates.task_ps(HostTask("nvme_write", 10**9)) == 500 * 10**9


def test_bytes_of_an_update():
    adamw = find_optimizer("adamw")
    assert adamw is not None
    # weight and two estimates read and written, gradient read: 14 bytes in 16 bits, 28 in 32
    assert OptimizerOffload().update(adamw, (10, 10), bfloat16, False, True) == (1400, 200, 600, 200)
    assert OptimizerOffload().update(adamw, (10, 10), float32, False, True) == (2800, 400, 1200, 400)
    # masters: all in 32 bits but the gradient, and a copy in 16 bits
    assert OptimizerOffload().update(adamw, (10, 10), bfloat16, True, True) == (2800, 200, 1200, 200)
    # DeepSpeed: gradients in 32 bits are read, multiplied, and read; weights go back in 32 bits
    assert OptimizerOffload("deepspeed").update(adamw, (10, 10), bfloat16, False, True) == (3600, 400, 1200, 400)
