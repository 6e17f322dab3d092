"""The robot's skills as tools: what calls do, which are refused, and the protocol with its public client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from eval.tools import stdio
from eval.tools.command import ClientGone, Episode
from eval.tools.manual import TOOLS
from eval.tools.toolbox import Toolbox
from planner.predicates import holds
from planner.rules import Rules
from planner.single_steps import SingleSteps
from rearrange.command_line.cli import main
from skills import SKILLS, make_skill
from tests.docs.markdown import HOME, blocks
from tests.eval.scenario.test_hab import job
from tests.planner.puppet import Puppet, scenario_env
from tests.waiting import until

RULES = Rules(recovery="replan", drop_wrong_object=True, retreat_m=0.2, reset_arm_steps=20)
LOADING_S = 300.0  # timed: of a program that loads a simulator on a machine that is busy with other things


@pytest.fixture(scope="module")
def env():
    return scenario_env("set_table")


def toolbox(env, rules=RULES, fails=None) -> tuple[Toolbox, SingleSteps]:
    Puppet.fails, Puppet.begun = fails or {}, 0
    skills = {name: make_skill(name) for name in SKILLS}
    run = SingleSteps(env, skills, dict.fromkeys(skills, Puppet), rules)
    run.reset(0)
    return Toolbox(run, run.advance), run


def done(tools: Toolbox, *calls: str) -> str:
    """Carry calls out, `pick object_0`, all of which are done; the last answer."""
    for call in calls:
        tool, *value = call.split()
        answer = tools.call(tool, dict(zip(TOOLS[tool].arguments, value)))
        assert not answer.refused and answer.text.startswith("Done"), (call, answer.text)
    return answer.text


BOWL = ("go cabinet_0", "open cabinet_0", "go object_0", "pick object_0", "go goal_0", "place goal_0", "go cabinet_0",
        "close cabinet_0")
APPLE = ("go fridge", "open fridge", "go object_1", "pick object_1", "go goal_1", "place goal_1", "go fridge",
         "close fridge")


def test_calls_bring_about_the_goal_which_done_judges(env):
    tools, run = toolbox(env)
    done(tools, *BOWL)
    assert "at object_0 goal_0: holds" in tools.call("list").text
    assert "at object_1 goal_1: does not hold" in tools.call("list").text
    done(tools, *APPLE)
    assert tools.call("done").text.startswith("Success: the goal holds (4 facts)")
    assert run.report.end == "success" and [record.skill for record in run.report.records[:2]] == [
        "navigate", "open_cabinet"]
    steps = env.steps
    for tool in TOOLS:
        arguments = {name: True if kind == "boolean" else "fridge"
                     for name, (kind, _, _) in TOOLS[tool].arguments.items()}
        answer = tools.call(tool, arguments)
        assert answer.refused and "over" in answer.text and env.steps == steps


def test_done_too_early_says_what_is_missing(env):
    tools, run = toolbox(env)
    done(tools, *BOWL[:-2])
    answer = tools.call("done").text
    assert answer == "No success: 2 of 4 facts of the goal hold; missing: at object_1 goal_1, closed cabinet_0."
    assert run.report.end == "bad_stop" and run.report.metrics["goal_share"] == 0.5


REFUSED = {
    "no such tool": ((), "fly", {}, "tools are list, look, go, pick, place, open, close, done."),
    "no argument": ((), "go", {}, "go needs to: name of an object or place"),
    "another argument": ((), "go", {"where": "fridge"}, "go has no argument 'where': it takes to."),
    "another type": ((), "go", {"to": 3}, "to=3 is not allowed: it must be a string"),
    "no truth value": ((), "look", {"picture": "yes"}, "picture='yes' is not allowed: it must be a boolean"),
    "unknown name": ((), "go", {"to": "fridg"}, "did you mean fridge?): names are object_0 (bowl), object_1 (apple)"),
    "no object": ((), "pick", {"object": "goal_0"}, "There is no object 'goal_0'"),
    "no container": ((), "open", {"container": "object_0"}, "names are cabinet_0"),
    "far away": ((), "open", {"container": "fridge"}, "m away, out of reach: go there first."),
    "in a closed drawer": ((), "pick", {"object": "object_0"}, "which is shut: open that first."),
    "empty hand": ((), "place", {"goal": "goal_0"}, "The hand holds no object"),
    "open already": (BOWL[:2], "open", {"container": "cabinet_0"}, "is open by 0.45 m already."),
    "shut already": ((), "close", {"container": "fridge"}, "fridge is shut already."),
    "full hand": (BOWL[:4], "pick", {"object": "object_1"}, "This needs an empty hand, and the hand holds object_0"),
    "full hand at a door": ((*BOWL[:4], "go fridge"), "open", {"container": "fridge"}, "This needs an empty hand"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_makes_no_sense_changes_nothing(env, case):
    before, tool, arguments, said = REFUSED[case]
    tools, run = toolbox(env)
    if before:
        done(tools, *before)
    state = env.steps, run.sim.base_pose, run.sim.held, len(run.report.records)
    answer = tools.call(tool, arguments)
    assert answer.refused and said in answer.text and answer.text.count("\n") == 0, answer.text
    assert (env.steps, run.sim.base_pose, run.sim.held, len(run.report.records)) == state and run.waits


@pytest.mark.parametrize("drops", [True, False])
def test_a_failure_is_told_and_can_be_tried_again(env, drops):
    rules = replace(RULES, drop_wrong_object=drops, max_steps=dict.fromkeys(RULES.max_steps, 6))
    tools, run = toolbox(env, rules, {3: "nothing", 4: "wrong_object"})
    done(tools, *BOWL[:3])
    late = tools.call("pick", {"object": "object_0"})
    assert late.text.startswith("Failed: pick reached its limit of 6 steps, and the hand holds nothing.")
    wrong = tools.call("pick", {"object": "object_0"})
    assert wrong.text.startswith("Failed: pick ended without its effect, and the hand holds nothing.")
    assert not late.refused and run.sim.held is None, "a failure is an answer; what was not meant is let go"
    done(tools, "go object_0", "pick object_0")


def test_the_robot_withdraws_and_leads_its_arm_home_after_a_call(env):
    from rearrange.home.robot.fetch import ARM

    tools, run = toolbox(env, Rules(reset_arm_steps=150))
    done(tools, *BOWL[:4])
    assert run.waits and np.abs(run.sim.arm_positions() - ARM.start).max() < 0.06
    assert holds(run.sim, run.symbols, ("holding", "object_0"))


def test_what_is_said_is_what_the_robot_knows(env):
    """An object that is taken away behind its back is where it was; with the state as knowledge it is elsewhere."""
    for rules, known in ((replace(RULES, knowledge="seen"), False), (RULES, True)):
        tools, run = toolbox(env, rules)
        run.sim._set_object(run.symbols.objects["object_0"], (*run.sim.base_pose[:2], 0.05, 1.0, 0.0, 0.0, 0.0))
        mujoco.mj_forward(run.sim.model, run.sim.data)
        assert ("object_0 (bowl): on the floor, 0.0 m away" in tools.call("list").text) == known
        assert ("object_0 (bowl): in cabinet_0" in tools.call("list").text) != known


def test_look_tells_what_the_camera_shows(env):
    tools, run = toolbox(env, Rules())
    done(tools, *BOWL[:3])
    answer = tools.call("look", {"picture": True})
    _, owners = run.sim.owner_image(128)
    for name, index in run.symbols.objects.items():
        assert (name in answer.text) == ((owners == index).sum() >= run.rules.detector_pixels), answer.text
    assert "object_0 (bowl)" in answer.text and answer.text.endswith("Now the hand holds nothing.")
    assert answer.picture.shape == (256, 256, 3) and answer.picture.std() > 1
    assert env.steps == run.env.steps and tools.call("look").picture is None


def test_the_limit_of_the_episode_ends_a_call(env, monkeypatch):
    monkeypatch.setattr(env, "max_steps", 4)
    tools, run = toolbox(env, fails={0: "nothing"})
    answer = tools.call("go", {"to": "fridge"})
    assert answer.text == "The episode is over: its limit of 4 steps (0.1 s) was reached."
    assert run.report.metrics["failure/time_limit"] and tools.call("done").refused


def test_a_client_that_goes_ends_the_call_under_way():
    client = SimpleNamespace(closed=threading.Event())
    episode = Episode(job("set_table", "random", 1), 0)

    def step():
        if episode.run.env.steps == 5:
            client.closed.set()
        episode.step(client)

    with pytest.raises(ClientGone):
        Toolbox(episode.run, step).call("go", {"to": "fridge"})
    assert episode.run.env.steps == 5 and not episode.run.done
    episode.run.leave()
    assert episode.run.report.end == "left" and episode.run.report.metrics["goal_share"] == 0.5


def test_every_tool_says_what_it_takes():
    for tool in TOOLS.values():
        assert tool.text.endswith(".") and set(tool.schema()["required"]) <= set(tool.arguments)
    assert "\n| `list` |" in (page := (HOME / "docs/tools.md").read_text(encoding="utf-8"))
    assert all(f"`{name}`" in page for name in (*TOOLS, *(each for tool in TOOLS.values() for each in tool.arguments)))


def test_without_the_package_it_says_how_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(stdio, "find_spec", lambda name: None)
    assert main(["tools", "hab=set_table", f"output={tmp_path}"]) == 2
    assert "pip install 'rearrange[tools]'" in capsys.readouterr().err and not list(tmp_path.iterdir())


# ------------------------------------------------------------------ the protocol

def test_the_scripted_agent_of_the_page_sets_the_table(tmp_path):
    """With the public client, which understands nothing else on standard output."""
    pytest.importorskip("mcp", reason="needs mcp: pip install 'rearrange[tools]'")
    script = tmp_path / "agent.py"
    script.write_text(TWICE + blocks(HOME / "docs/tools.md", "python")[0].replace(
        'await call("done")', 'print(await twice(robot)); await call("done"); await call("list")'))
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=LOADING_S)
    assert ran.returncode == 0, ran.stderr
    assert "\ndone -> Success: the goal holds (4 facts)" in ran.stdout
    assert f"[False, True] {stdio.BUSY.text}\n" in ran.stdout
    assert ran.stdout.endswith("list -> The episode is over, and no tool can be called any more.\n")
    run = tmp_path / "outputs/tools/set_table/scripted"
    calls = [json.loads(line) for line in (run / "calls.jsonl").read_text().splitlines()]
    figures = json.loads((run / "metrics.json").read_text())
    assert figures["success"] == 1 and figures["goal_share"] == 1 and figures["ended"] == "success"
    assert figures["calls"] == len(calls) and calls[0]["tool"] == "list" and calls[-1]["refused"]
    assert calls[-2]["tool"] == "done" and calls[-2]["to_step"] == figures["steps"]
    assert json.loads((run / "status.json").read_text())["status"] == "finished"


TWICE = '''
async def twice(robot):
    """Eight calls at once, so that one comes while another is under way: whether some were carried out and some
    refused, and in which words."""
    got = []
    async def go(place):
        got.append(await robot.call_tool("go", {"to": place}))
    async with anyio.create_task_group() as group:
        for place in ("goal_0", "cabinet_0") * 4:
            group.start_soon(go, place)
    said = sorted(got, key=lambda answer: answer.is_error)
    return str([bool(said[0].is_error), bool(said[-1].is_error)]) + " " + said[-1].content[0].text

'''


def test_sigterm_ends_it_and_keeps_what_was_done(tmp_path):
    pytest.importorskip("mcp", reason="needs mcp: pip install 'rearrange[tools]'")
    command = [sys.executable, "-m", "rearrange", "tools", "hab=set_table", "agent=random", "name=a", "video=1"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        for message in ({"id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {"name": "list", "arguments": {}}},
                ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "go", "arguments": {"to": "fridge"}}}) + "\n")
        process.stdin.flush()
        until((tmp_path / "outputs/tools/set_table/a/calls.jsonl").exists, "the first call is noted", process=process)
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=LOADING_S)
    run = tmp_path / "outputs/tools/set_table/a"
    assert process.returncode == 130 and "stopped." in err and "Traceback" not in err, err
    greeting = answers[0]["result"]
    assert greeting["serverInfo"]["name"] == "rearrange" and "`list` first" in greeting["instructions"]
    assert "Task: " in answers[1]["result"]["content"][0]["text"]
    figures = json.loads((run / "metrics.json").read_text())
    assert figures["ended"] == "left" and figures["success"] == 0 and figures["calls"] >= 1
    assert json.loads((run / "status.json").read_text())["status"] == "stopped"
    assert (run / "videos/episode.mp4").stat().st_size > 1000
