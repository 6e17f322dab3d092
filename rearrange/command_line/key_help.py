"""The text of `rearrange <command> --help`: choices, then every key by component."""

from __future__ import annotations

import shutil
import textwrap

from rearrange.command_line.composition import bench_settings as bench
from rearrange.command_line.composition import options
from rearrange.command_line.composition.command_names import SINGLE
from rearrange.command_line.composition.options import Settings
from rearrange.command_line.composition.parse_overrides import REQUIRED
from trainer.setting_rules import shown

EXAMPLES = {
    "train": (
        "rearrange train skill=pick",
        "rearrange train skill=pick policy=blind seed=1 name=blind_1",
        "rearrange train skill=pick name=blind_1 resume=true",
        "rearrange train -m skill=pick seed=0,1,2",
    ),
    "eval": (
        "rearrange eval skill=pick video=3",
        "rearrange eval skill=pick checkpoint=outputs/train/pick/latest episodes=500",
        "rearrange eval skill=pick agent=random",
        "rearrange eval hab=tidy_house",
        "rearrange eval hab=set_table skills=newest skills.open_fridge=expert",
        "rearrange eval hab=all agent=expert name=expert",
    ),
    "record": (
        "rearrange record skill=pick out=pick_expert",
        "rearrange record skill=open_fridge agent=pretrained episodes=200 successes_only=false out=fridge",
        "rearrange record hab=tidy_house agent=pretrained episodes=100 max_gb=5 out=tidy_house",
        "rearrange record replay=pick_expert episodes=20",
    ),
    "reproduce": (
        "rearrange reproduce preset=smoke",
        "rearrange reproduce",
        "rearrange reproduce agents=[tp_srl,tp_srl_nonav] episodes=1000 name=figure_6",
        "rearrange reproduce agents=[tp_srl] protocols=[honest,oracle] episodes=500 name=whole_tasks",
        "rearrange reproduce policies policies=[pick]",
    ),
    "bench": ("rearrange bench sim", "rearrange bench sim depth_size=64 seconds=5"),
    "report": (
        "rearrange report",
        "rearrange report outputs/eval/pick/latest outputs/train/pick out=pick.html",
    ),
    "export": ("rearrange export "
               "checkpoint=outputs/train/pick/latest", "rearrange export checkpoint=best.pt format=torch out=pick.pt2"),
    "scenes": (
        "rearrange scenes export format=habitat split=val count=10 out=homes",
        "rearrange scenes export split=train count=96 out=homes_train episodes=1000 episodes_of=[pick,tidy_house]",
        "rearrange scenes check dataset=replica_cad/replicaCAD.scene_dataset_config.json",
        "rearrange scenes view dataset=replica_cad/replicaCAD.scene_dataset_config.json scenes=v3_sc0_* out=scenes.png",
        "rearrange scenes measure dataset=replica_cad/replicaCAD.scene_dataset_config.json scenes=v3_sc3_*",
        "rearrange scenes episodes dataset=replica_cad/replicaCAD.scene_dataset_config.json hab=set_table count=100",
    ),
    "serve": ("rearrange serve skill=pick", "rearrange serve checkpoint=outputs/train/pick/latest port=8000"),
    "tools": ("rearrange tools hab=set_table", "rearrange tools hab=tidy_house agent=expert episode=3 video=1"),
    "view": (
        "rearrange view",
        "rearrange view skill=open_fridge agent=pretrained",
        "rearrange view skill=pick agent=newest",
        "rearrange view nav=pointnav agent=pretrained",
        "rearrange view skill=pick agent=teleop out=my_picks",
    ),
    "list": ("rearrange list", "rearrange list output=outputs"),
}


def help_text(settings: Settings, summary: str) -> str:
    """The help of a command, for the choices that `settings` made."""
    width = min(shutil.get_terminal_size((120, 24)).columns, 140)
    command, chosen = settings.command, settings.choices
    words = {"bench": "<what> ", "report": "[directory ...] ", "scenes": "export | list | check | view | "
                                                                         "measure | episodes "}.get(command, "")
    program = f"rearrange {command} {words}"
    if not (module := bench.MODULES.get(chosen.get("bench"), "eval.bench")).startswith("eval.bench"):
        program = f"python -m {module} "
    lines = [f"usage: {program}[key=value ...]", "", summary[0].upper() + summary[1:] + ".", ""]
    lines += [f"  {example}" for example in EXAMPLES[command]] + [""]
    lines += [
        "options:",
        "  --help     this page, for the choices given beside it",
        "  --cfg job  print every setting with its value, and do nothing",
    ]
    if command not in SINGLE:
        lines += ["  -m         sweep: one run per combination of comma-separated values"]
    groups = options.groups(command)
    if groups:
        lines += ["", "choices (* = taken):"]
    for group in groups:
        for number, choice in enumerate(options.choices(group)):
            star = "*" if chosen.get(group) == choice else " "
            head = f"  {group if number == 0 else '':<11}{star}{group}={choice}"
            lines += _row(head, 36, options.title(group, choice), width)
    return "\n".join(lines + _key_lines(settings, width))


def _key_lines(settings: Settings, width: int) -> list[str]:
    """One line per key that can be changed, under the component that it belongs to."""
    lines, section = [], None
    for name, value in settings.values.items():
        key = settings.keys.get(name)
        if key is None or key.rule.is_fixed:
            continue
        part = name.split(".")[0] if "." in name else ""
        if part != section:
            section = part
            choice = f" ({part}={settings.choices[part]})" if part in settings.choices else ""
            lines += ["", f"{part or 'general'}{choice}:"]
            if whole := settings.keys.get(part):  # a block that can be set as one
                lines += _row(f"  {part}=", 36, f"{whole.text} [{whole.rule.short}]", width)
        lines += _row(f"  {name}={shown(value)}", 36, f"{key.text} [{key.rule.short}]", width)
    missing = REQUIRED.get(settings.command)
    if missing and missing not in settings.choices:
        example = options.choices(missing)[0]
        word = example if settings.command == "bench" else f"{missing}={example}"
        lines += ["", f"'rearrange {settings.command} {word} --help' shows the settings of {word} too."]
    notes = bench.NOTES.get(settings.choices.get("bench"), ())
    return lines + (["", "figures:"] + [f"  {note}" for note in notes] if notes else [])


def _row(head: str, column: int, text: str, width: int) -> list[str]:
    """`head`, then `text` from `column` on, wrapped."""
    wrapped = textwrap.wrap(text, max(width - column, 20)) or [""]
    first = [f"{head:<{column - 1}} {wrapped[0]}".rstrip()] if len(head) < column else [head, " " * column + wrapped[0]]
    return first + [" " * column + line for line in wrapped[1:]]
