"""What runs behind the page of `rearrange view`, without a browser: choices, driving, recording, newer checkpoints,
mistakes."""

from __future__ import annotations

import shutil
import socket

import numpy as np
import pytest

from rearrange.command_line.cli import main

viser = pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")

from eval.view import server as serving  # noqa: E402
from eval.view.viewer import Viewer  # noqa: E402


def press(viewer: Viewer, name: str, *values) -> None:
    """As the page does, and what follows from it until a person has to say something again."""
    viewer._page.calls.put((name, values))
    viewer.turn()
    for _ in range(600):
        if not (viewer.session.driver and viewer.session.driver.is_busy) or viewer.session.done:
            return
        viewer.turn()


def test_what_is_driven_is_kept_and_replays(view, tmp_path):
    """A person picks an object; the data set goes through the same doors as any other."""
    pytest.importorskip("pyarrow")
    viewer = view("skill=pick", "agent=teleop", "episode=1", f"out={tmp_path}", "image_size=16", "skill.max_steps=700")
    session, sim = viewer.session, viewer.session.sim
    target = session.env.skill.target
    viewer.turn()
    assert session.env.steps == 0 and session.driver is not None, "time stands still"

    def to(dx: float, dy: float, dz: float) -> None:
        x, y, z = sim.object_position(target)
        viewer._drive("hand_to", sim, (x + dx, y + dy, z + sim.object_half_extents(target)[2] + dz))
        press(viewer, "halt") if not session.driver.is_busy else press(viewer, "play")

    press(viewer, "face", (0.0, 0.0, -1.0))
    to(0.0, 0.0, 0.1)
    press(viewer, "grip", True)
    to(0.0, 0.0, -0.01)
    assert sim.held == target
    to(0.0, 0.0, 0.15)
    viewer._drive("hand_to", sim, sim.from_base((0.5, 0.0, 1.0)))
    press(viewer, "play")
    assert session.done and session.success, (session.reason, session.driver.note)
    assert viewer._page.recorded.content.startswith("kept: 1 episodes")
    assert main(["record", f"replay={tmp_path / 'pick'}", "workers=1"]) == 0


def test_the_hand_goes_where_it_is_told_in_the_base_frame(view):
    viewer = view("skill=pick", "agent=teleop", "image_size=0")
    sim = viewer.session.sim
    for _ in range(4):
        press(viewer, "drive", -1.0, 0.0)  # away from things
    for _ in range(30):
        sim.step()  # the arm sways when the base brakes
    begun = np.array(sim.ee_in_base)
    for by in ((0.02, 0.0, 0.0), (0.0, 0.04, 0.0), (0.0, 0.0, -0.06)):
        before = np.array(sim.ee_in_base)
        press(viewer, "move_hand", *by)
        assert np.abs(np.array(sim.ee_in_base) - before - by).max() < 0.008
    x, y, yaw = sim.base_pose
    press(viewer, "drive", 0.0, 1.0)
    before = sim.base_pose
    sim.step()
    assert np.abs(np.subtract(sim.base_pose, before)).max() < 0.002, "it stands when time does"
    assert sim.base_pose[2] > yaw + 0.2
    assert np.abs(np.array(sim.ee_in_base) - begun - (0.02, 0.04, -0.06)).max() < 0.03, "the hand turns with the base"
    press(viewer, "move_hand", 2.0, 0.0, 0.0)
    assert "out of the hand's reach" in viewer._lines()[-2]
    press(viewer, "drive_to", *sim.from_base((-0.5, 0.0, 0.0))[:2])
    assert np.hypot(sim.base_pose[0] - x, sim.base_pose[1] - y) > 0.2


def test_other_tasks_agents_and_episodes_are_chosen_in_the_page(view, capsys):
    viewer = view("skill=pick", "agent=zero", "paused=true")
    assert viewer.session.number == 0 and not viewer.playing
    press(viewer, "next")
    press(viewer, "step")
    viewer.turn()
    assert (viewer.session.number, viewer.session.env.steps) == (1, 1)
    press(viewer, "agent", "a/run/that/is/not/there")
    assert "agent=a/run/that/is/not/there: there is no such file or run" in capsys.readouterr().err
    assert viewer._page.agent.value == "zero" and viewer.session.env.steps == 1, "what ran goes on"
    press(viewer, "task", "skill=open_fridge")
    press(viewer, "step")
    assert (viewer.session.name, viewer.session.number, viewer.session.env.steps) == ("open_fridge", 1, 1)
    press(viewer, "task", "hab=tidy_house")
    assert viewer.session.name == "tidy_house" and viewer._page.agent.value == "expert", "which no zero does"
    assert viewer._page.plan.content.startswith("1. **navigate to ") and "pick" in viewer._page.plan.content
    assert "\n" in viewer._page.now.content and viewer._page.head.content.startswith("**")
    press(viewer, "step")
    assert viewer._times and "distance" in viewer._sums and viewer.session.value is None
    press(viewer, "agent", "teleop")
    press(viewer, "call_stop")
    press(viewer, "play")
    assert viewer.session.done and viewer.session.reason == "bad stop"


def test_each_episode_takes_the_newest_checkpoint_of_a_run(view, tmp_path):
    from skills import pretrained

    run = tmp_path / "train/pick/mine"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text("seed: 1\n")
    shutil.copy(pretrained.path("pick"), run / "checkpoints/step_000000000007.pt")
    viewer = view("skill=pick", "agent=newest", f"output={tmp_path}", "paused=true")
    press(viewer, "step")
    viewer.turn()
    assert viewer.session.value is not None and len(viewer._values) == 1
    assert "policy: step_000000000007 of mine" in viewer._lines() and str(run) in viewer._page.agent.options
    shutil.copy(pretrained.path("pick"), run / "checkpoints/step_000000000009.pt")
    agent = viewer.session._agent
    press(viewer, "next")
    assert "policy: step_000000000009 of mine" in viewer._lines() and viewer.session._agent is not agent
    (run / "checkpoints/step_000000000011.pt").write_bytes(b"half")
    press(viewer, "next")
    assert "policy: step_000000000009 of mine" in viewer._lines(), "one that cannot be read is left out"


def test_the_home_is_shown_where_it_is_and_walls_are_cut(view):
    from eval.view.home_in_scene import LOW_FURNITURE_M, LOW_WALL_M

    viewer = view("skill=pick", "agent=zero", "paused=true")
    home, sim = viewer._home, viewer.session.sim
    _, still, moving = home._split(sim, home._shown[1])

    def tops(pieces):
        return [sim.data.geom_xpos[piece.geom, 2] + piece.offset_m + piece.half_m[2] for piece in pieces]

    assert max(tops(still)) <= LOW_FURNITURE_M + 1e-6 and sum(abs(top - LOW_WALL_M) < 1e-6 for top in tops(still)) > 4
    home.low_walls = False
    _, whole, _ = home._split(sim, home._shown[1])
    assert max(tops(whole)) > 2.0 and len(whole) > len(still)
    home.low_walls = True
    parts = [part for part in home._moving._parts if len(part[1])]
    before = {piece.geom: sim.data.geom_xpos[piece.geom].copy() for piece in moving}
    sim.step(base=[1.0, 0.0])
    for _ in range(5):
        sim.step(base=[1.0, 0.0])
    viewer._show(everything=True)
    moved = [geom for geom, place in before.items() if np.abs(sim.data.geom_xpos[geom] - place).max() > 0.01]
    for handle, geoms, offsets, *_ in parts:
        for row, geom in enumerate(geoms):
            if geom in moved and not offsets[row]:
                assert np.allclose(handle.batched_positions[row], sim.data.geom_xpos[geom], atol=1e-4)
    assert moved


def test_meshes_are_cut_at_a_height():
    from eval.view.home_in_scene import below

    corners = np.random.default_rng(0).uniform(-1, 1, (200, 3, 3))
    cut, of = below(corners, 0.3)

    def areas(triangles):
        return np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]),
                              axis=1) / 2

    above, _ = below(corners * (1, 1, -1), -0.3)
    assert cut[:, :, 2].max() <= 0.3 + 1e-9 and len(of) == len(cut) > 100
    assert np.isclose(areas(cut).sum() + areas(above).sum(),
                      areas(corners).sum()), "the two sides together are the whole"
    normals = [np.cross(each[:, 1] - each[:, 0], each[:, 2] - each[:, 0]) for each in (cut, corners[of])]
    assert ((normals[0] * normals[1]).sum(1) >= -1e-12).all(), "seen from the same side"


def test_mistakes_are_one_sentence(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", "skill=pick", f"port={port}"]) == 2
        assert f"host=127.0.0.1 port={port} cannot be listened at: Address already in use" in capsys.readouterr().err
    assert main(["view", "skill=pick", "port=0", "allowed_hosts=[a.example, http://b.example/]"]) == 2
    assert "allowed_hosts=http://b.example/ is no name of a host" in capsys.readouterr().err
    assert main(["view", "nav=pointnav", "agent=expert"]) == 2
    assert main(["view", "skill=pick", "sim=habitat"]) == 2
    assert "sim=habitat" in capsys.readouterr().err
    assert main(["view", "skill=pick", "agent=pretraine", "port=0"]) == 2
    assert "Did you mean agent=pretrained?" in capsys.readouterr().err
    assert main(["view", "skill=pick", "agent=teleop", "port=0", f"out={tmp_path / 'file' / 'x'}"]) == 2
    assert "Choose another place with out=." in capsys.readouterr().err
    monkeypatch.setattr(serving, "find_spec", lambda name: None)
    assert main(["view", "skill=pick"]) == 2
    assert capsys.readouterr().err == "rearrange view: the page needs viser: pip install 'rearrange[view]'.\n"


def test_ctrl_c_ends_it_and_gives_the_port_back(monkeypatch, capsys):
    def interrupted(viewer):
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "turn", interrupted)
    assert main(["view", "skill=pick", "agent=zero", "port=0"]) == 130
    out, err = capsys.readouterr()
    address = out.split("http://127.0.0.1:")[1].partition(";")[0]
    assert err.endswith("rearrange view: stopped.\n")
    with socket.create_server(("127.0.0.1", int(address))):
        pass
