"""What `rearrange train` says about how a training ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval import engine_settings, train_command
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from trainer import CollectConfig, TrainConfig, loop

RUN = Path("outputs/train/pick/a")
TRAIN = ["train", "skill=pick", "policy=blind", "logger=tensorboard", "steps=100", "name=a"]


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """`ended(end)`: train in an empty directory with `end(run_dir)` in place of the engine; the exit status."""
    monkeypatch.chdir(tmp_path)
    for name, stand_in in (("probe_env", lambda task, silent: None), ("per_action", lambda engine, task, env: engine),
                           ("_check_network", lambda *_, **__: None)):
        monkeypatch.setattr(train_command, name, stand_in)

    def run(end) -> int:
        monkeypatch.setattr(loop, "train", lambda make_env, config, run_dir, *_, **__: end(Path(run_dir)))
        try:
            return main(TRAIN)
        except SystemExit as exit:
            return exit.code

    return run


def result(reason: str, checkpoint: Path | None, unsaved: int = 0):
    return loop.TrainResult(None, 100, reason, checkpoint, [], unsaved)


AGAIN = "ontinue with: rearrange train skill=pick name=a resume=true"


def test_a_training_whose_last_checkpoint_could_not_be_written_has_failed(ended, capsys):
    old = RUN / "checkpoints" / "step_000000000060.pt"
    assert ended(lambda run_dir: result("complete", old, 40)) == 1
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert ("all 100 steps are done, but the last checkpoint could not be written: "
            f"the newest is {old}, and the 40 steps") in err
    assert "Make room, and c" + AGAIN in err and err.split(" ", 2)[2] in (RUN / "log.txt").read_text()
    assert '"failed"' in (RUN / "status.json").read_text()


def test_and_so_has_one_without_any(ended, capsys):
    assert ended(lambda run_dir: result("complete", None, 100)) == 1
    assert "no checkpoint could be written: the 100 steps are lost. Make room" in capsys.readouterr().err
    assert '"failed"' in (RUN / "status.json").read_text()


def test_a_training_with_its_last_checkpoint_is_finished(ended):
    assert ended(lambda run_dir: result("complete", run_dir / "checkpoints" / "step_000000000100.pt")) == 0
    assert '"finished"' in (RUN / "status.json").read_text()


@pytest.mark.parametrize("checkpoint, unsaved, said", [
    (RUN / "checkpoints/step_000000000100.pt", 0, "step_000000000100.pt. C"),
    (RUN / "checkpoints/step_000000000060.pt", 40, "step_000000000060.pt, and the 40 steps after it are lost. C"),
    (None, 100, "; no checkpoint could be written: the 100 steps are lost. C"),
])
def test_a_signal_says_what_is_saved_and_what_is_lost(ended, capsys, checkpoint, unsaved, said):
    assert ended(lambda run_dir: result("SIGTERM", checkpoint, unsaved)) == 130
    assert said + AGAIN in capsys.readouterr().out and '"stopped"' in (RUN / "status.json").read_text()


@pytest.mark.parametrize("saved", [True, False])
def test_a_second_signal_says_what_there_is_and_how_to_go_on(ended, capsys, saved):
    """The name is taken by then."""
    def end(run_dir):
        if saved:
            (run_dir / "checkpoints" / "step_000000000050.pt").touch()
        raise KeyboardInterrupt

    assert ended(end) == 130
    err = capsys.readouterr().err
    kept = f"its newest checkpoint is {RUN}/checkpoints/step_000000000050.pt" if saved else "it has no checkpoint yet"
    assert f"stopped at once; {kept}. C{AGAIN}" in err and "Traceback" not in err


@pytest.mark.parametrize("device, fine", [("meta", False), ("warp", False), ("cpu", True)])
def test_a_device_has_to_hold_numbers(device, fine):
    from types import SimpleNamespace

    engine = SimpleNamespace(device=device)
    if fine:
        engine_settings.check_device(engine)
        return
    with pytest.raises(UserError, match=f"device={device}"):
        engine_settings.check_device(engine)


def test_far_more_processes_than_cores_are_warned_of_in_one_line(ended, capsys, monkeypatch):
    monkeypatch.setattr(engine_settings.os, "cpu_count", lambda: 2)
    of = {count: engine_settings.crowded(TrainConfig(collect=CollectConfig(num_workers=count)))
          for count in (None, 0, 2, 8, 99)}
    assert [count for count, said in of.items() if said] == [99]
    assert of[99].startswith("warning: trainer.num_workers=99 is far above the number of cores") and "(2)" in of[99]
    monkeypatch.setattr(f"{__name__}.TRAIN", [*TRAIN, "trainer.num_workers=99"])
    ended(lambda run_dir: (_ for _ in ()).throw(KeyboardInterrupt))
    assert of[99].partition(", which")[0] in capsys.readouterr().out
