"""A household task of one's own: put_away.yaml says what is moved, put_away.pddl what has to hold in the end.

    python examples/own_scenario.py
    rearrange eval hab=examples/put_away.yaml episodes=4 video=1
"""

from pathlib import Path

from planner import Executor, load_scenario
from planner.scenario_env import ScenarioEnv
from rearrange.env import HomeSettings
from skills import SKILLS, make_skill
from skills.experts import EXPERTS

scenario = load_scenario(str(Path(__file__).parent / "put_away.yaml"))
env = ScenarioEnv(scenario, HomeSettings("val", depth_size=0))
executor = Executor(env, {name: make_skill(name) for name in SKILLS}, EXPERTS)

report = executor.reset(0)
for step in report.plan.steps:
    print(step)
while not executor.done:
    executor.advance()
print(f"end: {report.end} after {env.steps} steps, {len(report.records)} skills, {report.recoveries} recoveries")
