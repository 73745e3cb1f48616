"""The completion script completes every existing name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from buddysim.base.option import field_options
from buddysim.cli import REGISTRY, completion, main
from buddysim.machine import Machine
from buddysim.replay.request import ReplayRequest
from buddysim.training import schemes
from buddysim.training.request import request_options


def completed(script: Path, *words: str) -> list[str]:
    """Return bash's completions of the last word."""
    line = " ".join(words)
    program = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shtab_buddysim; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "buddysim.bash"
    with path.open("w") as file, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path.parent))  # none that was stored
        patch.setattr("sys.stdout", file)
        with pytest.raises(SystemExit):
            main(["--print-completion", "bash"])
    return path


def test_names_of_every_kind_are_completed(script: Path) -> None:
    assert completed(script, "buddysim", "run", "--machine", "p100") == ["p100-nvlink2"]
    assert completed(script, "buddysim", "run", "--scheme", "bu") == ["buddy"]
    assert set(completed(script, "buddysim", "train", "--scheme", "vdnn-")) == {
        name for name in schemes.REGISTRY.names() if name.startswith("vdnn-")
    }
    assert set(completed(script, "buddysim", "train", "--link", "nvlink2")) == {"nvlink2"}
    assert "vdnn-fig11" in completed(script, "buddysim", "plot", "vdnn-fig1")
    assert "vgg16-vdnn" in completed(script, "buddysim", "train", "vgg16")
    assert completed(script, "buddysim", "traces", "bito") == ["bitonic-sort"]
    assert set(Machine.presets()) <= set(completed(script, "buddysim", "machines", "''"))


def test_a_parser_knows_no_choices_where_it_parses(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name gets the message that names the nearest, not argparse's."""
    assert main(["run", "no-such.bin", "--machine", "p100-nvlink3"]) == 2
    assert "p100-nvlink2" in capsys.readouterr().err


def test_every_kind_of_name_is_used() -> None:
    sources = "".join(Path(str(module.__file__)).read_text() for _, module in REGISTRY.items())
    options = [*field_options(ReplayRequest).values(), *request_options().values()]
    sources += "".join(f'"{option.completes}"' for option in options)
    assert [kind for kind in completion.NAMES if f'"{kind}"' not in sources] == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_one_command_installs_the_script(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as left:
        main(["--install-completion", shell])
    assert left.value.code == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.relative_to(tmp_path) == Path(completion.FOLDERS[shell][2])
    if shell == "bash":
        assert completed(path, "buddysim", "run", "--machine", "p100") == ["p100-nvlink2"]
    monkeypatch.setenv("XDG_DATA_HOME", "~no-such-user/x")
    assert main(["--install-completion", shell]) == 2
    assert "no home folder: set XDG_DATA_HOME" in capsys.readouterr().err
