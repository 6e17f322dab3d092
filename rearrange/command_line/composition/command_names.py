"""The commands, and the words that are no settings. Imports nothing: the quick answers need them first."""

COMMANDS = {
    "train": "train a skill with reinforcement learning",
    "eval": "evaluate a trained skill, a whole scenario or a baseline, and record videos",
    "reproduce": "train what is missing, evaluate every agent on every scenario, and set them beside the paper",
    "record": "record episodes of an expert or a policy as demonstrations, for imitation learning; or check that "
              "they replay",
    "view": "look into a home in the browser, watch an agent, or drive the robot and record it",
    "bench": "measure speed on this machine",
    "report": "write one HTML page with plots, videos and episodes of runs",
    "export": "write a trained policy as a file for ONNX or torch.export, which runs without this package",
    "scenes": "write our homes as a data set for Habitat; check, view or measure such data sets, draw episodes in them",
    "serve": "let a policy act for others, over a websocket",
    "tools": "offer the skills in a scenario as tools that an agent calls, over MCP on standard input and output",
    "list": "show skills, simulators and checkpoints",
    "doctor": "say what is installed, what is missing, and the command that mends it",
}
# commands without a run directory of their own
RUNLESS = ("export", "list", "record", "report", "reproduce", "scenes", "serve", "view")
SINGLE = (*RUNLESS, "tools")  # commands without sweeps
# command -> key of a first word that is not key=value
BARE_WORDS = {"bench": "bench", "scenes": "action", "reproduce": "preset"}
FLAGS = ("--help", "--cfg", "--multirun")
