"""What `rearrange train` says about how a training ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from rearrange import commands
from rearrange.cli import main
from trainer import loop

RUN = Path("outputs/train/pick/a")
TRAIN = ["train", "skill=pick", "policy=blind", "logger=tensorboard", "steps=100", "name=a"]


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """`ended(end)`: train in an empty directory with `end(run_dir)` in place of the engine; the exit status."""
    monkeypatch.chdir(tmp_path)
    for name, stand_in in (("_probe", lambda task, silent: None), ("per_action", lambda engine, task, env: engine),
                           ("_check_network", lambda engine, env, checkpoint: None)):
        monkeypatch.setattr(commands, name, stand_in)

    def run(end) -> int:
        monkeypatch.setattr(loop, "train", lambda make_env, config, run_dir, *_: end(Path(run_dir)))
        try:
            return main(TRAIN)
        except SystemExit as exit:
            return exit.code

    return run


def result(reason: str, checkpoint: Path | None):
    return loop.TrainResult(None, 100, reason, checkpoint, [])


def test_a_training_whose_last_checkpoint_could_not_be_written_has_failed(ended, capsys):
    def end(run_dir):
        old = run_dir / "checkpoints" / "step_000000000050.pt"
        old.touch()
        return result("complete", old)

    assert ended(end) == 1
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the checkpoint of step 100 could not be written; the last one is" in err
    assert "Make room, and continue with: rearrange train skill=pick name=a resume=true" in err
    assert '"failed"' in (RUN / "status.json").read_text()


def test_and_so_has_one_without_any(ended, capsys):
    assert ended(lambda run_dir: result("complete", None)) == 1
    assert "could not be written; there is none." in capsys.readouterr().err
    assert '"failed"' in (RUN / "status.json").read_text()


def test_a_training_with_its_last_checkpoint_is_finished(ended):
    assert ended(lambda run_dir: result("complete", run_dir / "checkpoints" / "step_000000000100.pt")) == 0
    assert '"finished"' in (RUN / "status.json").read_text()


def test_a_signal_after_which_nothing_could_be_saved(ended, capsys):
    assert ended(lambda run_dir: result("SIGTERM", None)) == 130
    out = capsys.readouterr().out
    assert "no checkpoint could be written. Continue with: rearrange train skill=pick name=a resume=true" in out


def test_a_signal_before_the_first_update_says_how_to_go_on(ended, capsys):
    """The name is taken by then."""
    def end(run_dir):
        raise KeyboardInterrupt

    assert ended(end) == 130
    err = capsys.readouterr().err
    assert "Continue with: rearrange train skill=pick name=a resume=true" in err and "Traceback" not in err


@pytest.mark.parametrize("device, fine", [("meta", False), ("warp", False), ("cpu", True)])
def test_a_device_has_to_hold_numbers(device, fine):
    from types import SimpleNamespace

    engine = SimpleNamespace(device=device)
    if fine:
        commands.check_device(engine)
        return
    with pytest.raises(commands.UserError, match=f"device={device}"):
        commands.check_device(engine)
