"""What a person has driven: nothing is lost that was said to be kept, on a full disk and beside another viewer, too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")
pytest.importorskip("pyarrow")

from eval.recording.folder import STATE, read_state, starts  # noqa: E402
from rearrange.home.errors import UserError  # noqa: E402
from tests.eval.recording.test_full_disk import Disk  # noqa: E402
from tests.small_disk import fill, free  # noqa: E402

WORDS = "skill=pick", "agent=teleop", "image_size=0", "skill.max_steps=3", "successes_only=false"


def drive(viewer) -> str:
    """Drive an episode to its end; what the page says of it."""
    session, viewer.playing = viewer.session, True
    if session.done:
        viewer._page.calls.put(("next", ()))
        viewer.turn()
    for _ in range(600):
        if session.done:
            return viewer._page.recorded.content
        viewer._page.calls.put(("drive", (-1.0, 0.0)))
        viewer.turn()
    raise AssertionError("the episode does not end")


def kept(path: Path) -> list[int]:
    """The attempts in a data set, which is complete: its rows are read."""
    import pyarrow.parquet as pq

    if not (path / STATE).exists():
        return []
    state = read_state(path)
    found = [start["attempt"] for start in starts(path)]
    assert found == [attempt[0] for attempt in state["attempts"] if attempt[1]] and len(set(found)) == len(found)
    assert sum(pq.read_metadata(file).num_rows for file in path.glob("data/*/*.parquet")) == state["frames"]
    return found


def test_an_episode_that_a_full_disk_refuses_is_written_once_there_is_room(view, small_disk, capsys):
    viewer = view(*WORDS, f"out={small_disk}")
    path = small_disk / "pick"
    assert drive(viewer).startswith("kept: 1 episodes") and kept(path) == [0]
    fill(small_disk, 0)
    for count in ("This episode waits", "2 episodes wait"):
        said = drive(viewer)
        assert "cannot be written: No space left on device. Make room, or choose another out=. " + count in said
        assert kept(path) == [0]
        assert capsys.readouterr().err == f"rearrange view: {said}\n", "one clear sentence"
    free(small_disk)
    assert drive(viewer).startswith("kept: 4 episodes") and kept(path) == [0, 1, 2, 3]
    fill(small_disk, 0)
    drive(viewer)
    free(small_disk)
    capsys.readouterr()
    viewer.close()
    assert capsys.readouterr().out.startswith("kept: 5 episodes") and kept(path) == [0, 1, 2, 3, 4]


def test_what_no_room_was_made_for_is_told_to_be_lost(view, small_disk, capsys):
    viewer = view(*WORDS, f"out={small_disk}")
    assert drive(viewer).startswith("kept: 1 episodes")
    fill(small_disk, 0)
    drive(viewer)
    capsys.readouterr()
    viewer.close()
    assert re.fullmatch(r"rearrange view: an episode of pick that was driven is lost: .*No space left on device\. .*\n",
                        capsys.readouterr().err)
    assert kept(small_disk / "pick") == [0]


def test_whichever_write_fails_an_episode_is_there_once(view, tmp_path, monkeypatch):
    viewer = view(*WORDS, f"out={tmp_path}")
    with monkeypatch.context() as patched:
        disk = Disk(patched, 10**9, 0, 28)
        drive(viewer)
    there = 1
    for number in range(1, disk.count + 1):
        with monkeypatch.context() as patched:
            Disk(patched, number, 1, 28)
            said = drive(viewer)
        assert "waits in memory" in said and len(kept(tmp_path / "pick")) == there
        assert drive(viewer).startswith(f"kept: {there + 2} episodes")
        there += 2
        assert kept(tmp_path / "pick") == list(range(there))


OTHER = """
import sys
from eval.view.server import make_server, stop
from eval.view.viewer import Viewer
from tests.eval.view.test_demonstrations import drive
from tests.eval.view.views import made
server = make_server("127.0.0.1", 0)
viewer = Viewer(server, *made(*sys.argv[1:], "speed=100"))
viewer._page.was_seen = True
print("ready", flush=True)
for _ in range(8):
    drive(viewer)
viewer.close()
stop(server)
"""


def test_two_viewers_write_into_one_folder(view, tmp_path):
    viewer = view(*WORDS, f"out={tmp_path}")
    other = subprocess.Popen([sys.executable, "-c", OTHER, *WORDS, f"out={tmp_path}", "seed=7"], stdout=subprocess.PIPE,
                             text=True, cwd=Path(__file__).parents[3])
    assert other.stdout.readline() == "ready\n"
    for _ in range(8):
        drive(viewer)
    said, _ = other.communicate(timeout=60)
    viewer.close()
    assert other.returncode == 0 and said.count("kept: ") >= 1
    assert kept(tmp_path / "pick") == list(range(16))


def test_a_folder_in_use_keeps_the_episode_in_memory(view, tmp_path):
    viewer = view(*WORDS, f"out={tmp_path}")
    drive(viewer)
    holder = subprocess.Popen([sys.executable, "-c", "import sys; from trainer.checkpoints.owner import hold; held = "
                               "hold(sys.argv[1]); print('held', flush=True); sys.stdin.read()", tmp_path / "pick"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    said = drive(viewer)
    assert f"is in use by process {holder.pid} " in said and "This episode waits in memory" in said
    holder.communicate()
    assert drive(viewer).startswith("kept: 3 episodes") and kept(tmp_path / "pick") == [0, 1, 2]


def test_a_folder_of_other_recordings_is_refused_before_anybody_drives(view, tmp_path):
    drive(view(*WORDS, f"out={tmp_path}"))
    with pytest.raises(
        UserError,
        match=r"was recorded by another command \(skill.max_steps=3, now 1000; image_size=0, now 32\): repeat that one",
    ):
        view("skill=pick", "agent=teleop", "image_size=32", f"out={tmp_path}")
    assert kept(tmp_path / "pick") == [0]
