"""From the words of a command line to a checked configuration.

Words are read by Hydra's grammar. The values, by their full names, are the defaults of dataclasses with those of YAML
files on top. Hydra's own composition takes 0.13 s of processor time for each of the jobs of a sweep, and this one 1 ms;
it accepts `+key=value` for a key that nothing reads, and answers a typo with the advice to write just that. Here every
group, choice, key, type and range is checked before anything else is imported, and each mistake is one sentence. """

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType, Sweep
from hydra.errors import HydraException, OverrideParseException

from rearrange.command_line.composition import bench_settings as bench
from rearrange.command_line.composition import options, other_words
from rearrange.command_line.composition.command_names import SINGLE
from rearrange.command_line.composition.options import AGENTS, Settings
from rearrange.home.errors import UserError
from rearrange.home.settings import presets
from rearrange.home.settings.environment import NAVIGATION_AGENTS, SEEING
from rearrange.home.settings.setting_fields import Key, NotAllowed, Rule, keys_of
from rearrange.home.settings.yaml_files import resolved
from skills import without_entry
from trainer.setting_rules import converted, leaves, nested, plain_of, shown

REQUIRED = {"train": "skill", "eval": "skill", "record": "skill", "view": "skill", "bench": "bench",
            "tools": "hab"}
SCENARIO_AGENTS = ("tp_srl", "tp_srl_nonav", "monolithic", "tp_spa")
HINTS = {"logger.wandb": " Did you mean logger=wandb?"}  # setting -> what is said of a value that it does not take
TASK_GROUPS = ("skill", "nav", "hab")  # of which a command takes one
SMALLEST_IMAGE = 8  # pixels, as in trainer/policy.py, which is not imported here: it brings torch
SKILL_BASELINES = ("expert", "random", "zero")
BASELINES = (*SKILL_BASELINES, *NAVIGATION_AGENTS)  # agents that learned nothing
# of skills, those of skills.experts.ADVISERS, which brings the simulator
ADVISED = {"skill": ("navigate",), "nav": ("pointnav", "objectnav")}
# settings that only a scenario has
SCENARIO_KEYS = ("skills.", "planner.", "whole_task.", "handoffs", "handoff_tries", "substitute", "subtasks")


CALLED = {"skill": "skill", "nav": "navigation task", "hab": "scenario"}


class UnknownKey(UserError):
    """A setting that there is not."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def compose(command: str, words: list[str]) -> Settings:
    """The configuration of one run of `command` with overrides `words` (each `key=value`)."""
    overrides = [parse(command, word) for word in words]
    groups = options.groups(command)
    for override in overrides:
        check_shape(override)
        if override.is_sweep_override():
            how = (f"{command} has no sweeps: give one value." if command in SINGLE
                   else "add -m to run them one after another.")
            raise UserError(f"'{override.input_line}' names several "
                            "values" + (", and " if command in SINGLE else ": ") + how)
        if override.key_or_group in groups:
            if not _is_own(override):
                check_choice(override.key_or_group, override.value())
            _refuse_plus(override)
    chosen = {o.key_or_group: str(o.value()) for o in overrides if o.key_or_group in groups and not _is_own(o)}
    last = {o.key_or_group: o for o in overrides if o.key_or_group in groups}
    own = {group: str(o.value()) for group, o in last.items() if _is_own(o)}
    values, choices = _compose_groups(command, chosen)
    # what an experiment sets for one task
    of_skill = values.get(f"of_skill.{choices.get('skill') or choices.get('nav')}", [])
    values = {name: value for name, value in values.items() if not name.startswith("of_skill.")}
    if "hab" in own:
        values |= _own_scenario(own["hab"])
        choices["hab"] = "tidy_house"  # whose keys it has
    lines = options.all_keys(command, choices.items())
    if "policy" in own:  # its settings are as if policy= were not given
        values["policy.network"] = choices["policy"] = word = own["policy"]
        lines["policy.network"] = Key("policy.network", word, Rule.only(word), "the network of policy=")
        # it may have encoders of its own
        lines["policy.encoder"] = dataclasses.replace(lines["policy.encoder"], rule=Rule.of("str | None"))
    # a setting says more than its group, wherever it stands
    wholes_first = sorted(overrides, key=lambda override: not _parts(values, override.key_or_group))
    for override in [parse(command, word) for word in of_skill] + wholes_first:
        if override.key_or_group not in groups:
            _apply(values, override, command, lines)
    if "hab" in own:
        lines["hab.name"] = dataclasses.replace(lines["hab.name"], rule=Rule.of("str"))
    if command == "eval" and values["agent"] not in AGENTS:
        lines["agent"] = dataclasses.replace(lines["agent"], rule=Rule.of("str | None", choices=_agents(choices),
                                                                         also=() if choices.get("hab") else (
                                                                             "importable",)))
    values = checked_values(values, lines)
    _check_together(values)
    return Settings(command, tuple(words), choices, values, lines)


def _is_own(override: Override) -> bool:
    """Whether a scenario or network of somebody else is named instead of one of the choices: package.module:Name, a
    name of an installed package, or the file of a scenario."""
    group, word = override.key_or_group, str(override.value())
    return group in ("hab", "policy") and (options.is_own(group, word)
                                           or group == "hab" and word.endswith((".yaml", ".yml")))


def _own_scenario(file: str) -> dict[str, Any]:
    """The settings of the scenario that a file describes; what the file leaves out is as in Tidy House."""
    from planner.scenarios import load_scenario

    scenario = load_scenario(file)
    made = dataclasses.asdict(scenario.scenario) | {"problem": str(scenario.problem), "max_steps": scenario.max_steps}
    return dict(leaves({"hab": plain_of(made)}))


def require(settings: Settings) -> None:
    """Raise UserError if the group that a command cannot do without is not chosen, or a choice has no meaning beside
    another."""
    if settings.command == "record" and settings.value("agent") == "teleop" and not os.path.exists("teleop"):
        raise UserError("record drives nothing by hand. Did you mean 'rearrange view agent=teleop'?")
    if settings.command not in ("record", "view"):  # whose agent= is also a path, and is looked at where it is loaded
        _check_agent(settings)
    if settings.value("to_the_end") and not settings.choices.get("skill"):
        raise UserError("to_the_end=true is for skill=: episodes of nav= and hab= end where the agent says stop.")
    group = REQUIRED.get(settings.command)
    if settings.command in ("eval", "train", "record", "view"):
        _refuse_two(settings)
        if _is_scenario(settings) or _is_navigation(settings):
            return
    if group and not settings.choices.get(group):
        there = options.choices(group)
        word = "sim" if group == "bench" else f"{group}={'pick' if 'pick' in there else there[0]}"
        raise UserError(
            f"which {CALLED.get(group, 'measurement')}? For example: rearrange {settings.command} "
            f"{word}. Choices: {', '.join(there)}."
            + (" Or a navigation task, nav=: "
               f"{', '.join(options.choices('nav'))}." if "nav" in options.groups(settings.command) else "")
            + (f" Or a scenario, hab=: {', '.join(options.choices('hab'))}."
               if group != "hab" and "hab" in options.groups(settings.command) else "")
        )


def _agents(choices: Mapping[str, str]) -> tuple[str, ...]:
    """The words that `eval agent=` takes for a skill, a navigation task or a scenario; all of them where none is
    chosen."""
    if choices.get("hab"):
        return (*SCENARIO_AGENTS, *SKILL_BASELINES)
    if choices.get("nav"):
        return ("policy", "pretrained", "random", *NAVIGATION_AGENTS, "remote")
    of_navigate = ("pointnav",) if choices.get("skill") == "navigate" else ()
    return ("policy", "pretrained", *SKILL_BASELINES, *of_navigate, "remote") if choices.get("skill") else AGENTS


def _check_agent(settings: Settings) -> None:
    """Refuse an agent that skills do not have, a checkpoint that nobody would read, and one that is not there."""
    config, skill = settings.values, settings.choices.get("skill") or settings.choices.get("nav")
    kind = "nav" if settings.choices.get("nav") else "skill"
    agent, checkpoint = config.get("agent"), config.get("checkpoint")
    own = agent is not None and ":" in agent
    takes = (*_agents(settings.choices), "package.module:Name")
    url = config.get("url")
    if settings.command == "eval" and (agent == "remote") != (url is not None):
        raise UserError("agent=remote needs url=, as in url=ws://127.0.0.1:8000." if url is None else
                        f"url={url} is for agent=remote: add it, or leave url= out.")
    if (own or agent == "remote") and settings.choices.get("hab"):
        word = url or agent
        raise UserError(f"agent={agent} is for skill= and nav=; of a scenario it can run single skills, as in "
                        f"skills.pick={word}.")
    if agent is not None and skill and not own and agent not in takes:
        of = ("hab=, which is a whole scenario" if agent in SCENARIO_AGENTS else
              "nav=" if agent in NAVIGATION_AGENTS else "skill=navigate" if agent == "pointnav" else "skill=")
        raise UserError(f"agent={agent} is for {of}; {kind}={skill} takes {', '.join(takes[:-1])} or {takes[-1]}.")
    if agent in NAVIGATION_AGENTS and settings.choices.get("hab"):
        raise UserError(f"agent={agent} is for nav=, a navigation task; hab= takes {', '.join(SCENARIO_AGENTS)}, "
                        "expert, random or zero.")
    if skill and checkpoint is not None and (agent in BASELINES or own or agent == "remote" or agent == "pretrained"
                                             and checkpoint != "pretrained"):
        raise UserError(f"agent={agent} takes no checkpoint={checkpoint}: leave one of them out.")
    if (agent in BASELINES or own or agent == "remote") and config.get("network") and skill:
        raise UserError(f"agent={agent} takes no network={config['network']}: leave one of them out.")
    named = checkpoint in (None, "pretrained", "newest")
    if skill and not named and not config.get("resume") and not os.path.exists(checkpoint):
        near = difflib.get_close_matches(checkpoint, ("pretrained", "newest"), 1)
        hint = f" Did you mean checkpoint={near[0]}?" if near else ""
        raise UserError(f"no checkpoint at {checkpoint}: give a .pt file or the directory of a training run.{hint}")


def _refuse_two(settings: Settings) -> None:
    """UserError for two of a skill, a navigation task and a scenario at once."""
    given = [f"{group}={settings.choices[group]}" for group in TASK_GROUPS if settings.choices.get(group)]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} are both given: {settings.command} takes one skill, one "
                        "navigation task or one scenario.")


def _is_navigation(settings: Settings) -> bool:
    """Whether `eval` or `train` is about a navigation task; refuses settings that have no meaning there."""
    task = settings.choices.get("nav")
    for word in settings.overrides if task else ():
        key = word.split("=")[0]
        if key.startswith("sim.") and key.removeprefix("sim.") not in ("gpu_device", *SEEING):
            raise UserError(f"{word} is for skill= and hab=: nav={task} has homes and an agent of its own. Its "
                            f"settings are nav.size, nav.scene_dataset and others: 'rearrange {settings.command} "
                            f"nav={task} --help'.")
    return bool(task)


def _is_scenario(settings: Settings) -> bool:
    """Whether `eval` or `train` is about a scenario; refuses settings that have no meaning."""
    scenario = settings.choices.get("hab")
    if not scenario:
        for word in settings.overrides:
            if f"{(key := word.split('=')[0])}.".startswith(SCENARIO_KEYS):
                raise UserError(f"{key} is a setting of scenarios; it needs hab=, for example hab=tidy_house.")
    return bool(scenario)


def parse(command: str, word: str) -> Override:
    """One `key=value`. Text and paths may hold any character, so they are quoted before Hydra reads them."""
    key, equals, value = word.partition("=")
    if word.startswith("~"):
        raise UserError(f"'{word}': settings cannot be removed, only changed; write {key[1:]}=value.")
    if not equals:
        raise UserError(_not_an_override(command, word))
    rule = text_rule(command, key.lstrip("+"))
    if key == "hab" and value.endswith((".yaml", ".yml")):
        rule = Rule.of("str", path=True)
    if rule and value and value[0] not in "'\"" and not _is_special(value):
        value = os.path.expanduser(value) if rule.is_path else value
        word = key + "='" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    try:
        override = _parser().parse_overrides([word])[0]
    except (OverrideParseException, HydraException) as error:
        raise UserError(_unreadable(word, key, value)) from error
    if _has_sweep_inside(override._value):
        raise UserError(f"cannot read '{word}': choice(), range() and the like stand for a whole value, not for a "
                        f"part of one; several whole values are written {key}=1,2,3 or {key}=[1,2],[1,3].")
    return override


@functools.cache
def _parser() -> OverridesParser:
    return OverridesParser.create()


def _has_sweep_inside(value: Any) -> bool:
    """Whether one of several values, or a part of a list or mapping, is itself several values."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value,
                                                                               list) else getattr(value, "list", ())
    return any(isinstance(each, Sweep) or _has_sweep_inside(each) for each in inner)


def _unreadable(word: str, key: str, value: str) -> str:
    """Why Hydra cannot read a `key=value`."""
    if not re.fullmatch(r"\+{0,2}[A-Za-z_][\w./@:-]*", key, re.ASCII):
        return f"'{key}' cannot be a key: keys are made of the letters a to z, digits, '_' and '.'."
    if value.strip(" ").startswith(",") or value.strip(" ").endswith(",") or ",," in value:
        return f"cannot read '{word}': a value is missing beside a comma; several values are written {key}=1,2,3."
    if "()" in value:
        return f"cannot read '{word}': no value stands in the parentheses; several values are written {key}=1,2,3."
    return (f"cannot read '{word}': brackets and quotes must be balanced, and a value with spaces, commas, "
            f"= or braces needs quotes that reach the program, as in \"{key or 'name'}='a=b'\".")


def _is_special(value: str) -> bool:
    """Whether Hydra shall read a text value: an interpolation, null, or the several values of a sweep."""
    return "${" in value or value == "null" or "," in value


@functools.cache
def text_rule(command: str, name: str) -> Rule | None:
    """The rule of a setting that holds free text or a path with one choice or another; None for others."""
    group = name.partition(".")[0] if "." in name else "bench"  # whose keys are its own
    found = [key for each in options.every_choice(command) if each[0] == group for key in options.keys(*each)]
    found += keys_of(options.COMMANDS[command][0])
    return next((key.rule for key in found if key.name == name and key.rule.is_text), None)


@functools.cache
def every_key(command: str) -> frozenset[str]:
    """All settings that a command has with one choice or another."""
    return frozenset(options.all_keys(command, options.every_choice(command)))


def _not_an_override(command: str, word: str) -> str:
    for group in options.groups(command):
        if word in options.choices(group):
            return f"'{word}' is not a setting. Did you mean {group}={word}?"
    return f"'{word}' is not a setting. Settings are written key=value; 'rearrange {command} --help' lists the keys."


def check_shape(override: Override) -> None:
    """Refuse packages, which nothing here has."""
    if override.package is not None:
        raise UserError(f"'{override.input_line}': '@' is not supported; write {override.key_or_group}=value.")


def _refuse_plus(override: Override) -> None:
    if override.type == OverrideType.ADD:
        raise UserError(f"'{override.input_line}': '{override.key_or_group}' exists already; write it without the +.")


def check_choice(group: str, value: Any) -> None:
    """Refuse a choice that a group does not have."""
    if value in options.ours(group):
        return
    there = options.choices(group)  # with those of installed packages
    if value in there or group == "skill" and options.is_own(group, str(value)):
        return
    if group == "skill" and (step := without_entry(str(value))):
        raise UserError(step)
    other = next((other for other in TASK_GROUPS if group in TASK_GROUPS and value in options.choices(other)), None)
    if other:
        raise UserError(f"{value} is no {CALLED[group]} but a {CALLED[other]}: write {other}={value}.")
    if group == "bench" and value in bench.IN_THE_REPOSITORY:
        raise UserError(f"{value} is measured in a clone of the repository: python -m benchmarks.{value}.")
    near = difflib.get_close_matches(str(value), there, 1, cutoff=0.5)
    hint = f" Did you mean {group}={near[0]}?" if near else ""
    what = {"hab": "scenario (hab)", "nav": "navigation task (nav)"}.get(group, group)
    how = {"policy": "network of your own: policy=package.module:Name", "skill": "skill of your own: "
           "skill=package.module:Name", "hab": "scenario of your own: hab=file.yaml"}.get(group)
    own = f" Or a {how}." if how else ""
    raise UserError(f"no {what} called '{'null' if value is None else value}'.{hint} Choices: {', '.join(there)}.{own}")


def _compose_groups(command: str, typed: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the choices that are typed and, of the other groups, of those that a chosen file makes or that
    are usual."""
    settings, usual = options.COMMANDS[command]
    made = [presets.preset(group, choice) for group, choice in typed.items() if choice in presets.names(group)]
    chosen = {group: choice for preset in made for group, choice in preset.chooses.items()} | typed
    values, choices = options.defaults(keys_of(settings)), {}
    for group, choice in usual.items():
        choice = chosen.get(group) or (choice() if callable(choice) else choice)
        if choice is not None:
            choices[group] = choice
            values |= options.values(group, choice)
    return values, choices


def _parts(values: Mapping[str, Any], name: str) -> list[str]:
    """The settings of a group."""
    return [key for key in values if key.startswith(f"{name}.")]


def _apply(values: dict[str, Any], override: Override, command: str, lines: dict[str, Key]) -> None:
    """Set one of `values`; of a block whose head has a rule in `lines`, every key."""
    name, value = override.key_or_group, override.value()
    paths = _paths(name, value)
    for key in paths:
        if key not in values and not _parts(values, key):
            raise UnknownKey(name, _unknown_key(key, value, values, command, override.type == OverrideType.ADD))
    _refuse_plus(override)
    try:
        resolved([value], only_read=True)
    except ValueError as error:
        raise UserError(f"cannot set {override.input_line}: {error}.") from error
    for key, each in paths.items():
        parts = _parts(values, key)
        if not parts:
            values[key] = each
        elif each != {}:
            if key not in lines:
                raise UserError(f"{key}={shown(each)} is not allowed: {key} is a group of settings; set one of them, "
                                f"such as {parts[0]}.")
            values |= dict.fromkeys(parts, _converted(key, each, lines[key].rule, f" For one alone: {parts[0]}=."))


def _paths(name: str, value: Any) -> dict[str, Any]:
    """`a={b: 1, c: 2}` sets a.b to 1 and a.c to 2."""
    if not isinstance(value, dict) or not value:
        return {name: value}
    return {path: each for key, inner in value.items() for path, each in _paths(f"{name}.{key}", inner).items()}


def as_setting(command: str, option: str, value: str | None) -> str:
    """Why `--option value` is refused, and the setting that is meant."""
    name = option.lstrip("-").replace("-", "_")
    known = {*every_key(command), *options.groups(command)}
    if name not in known and (answer := other_words.answer(name, value)):
        return f" {answer}"
    key = name if name in known else _hint(name, value or "", command, known)
    if key is None:
        return ""
    word = key if "=" in key or " " in key or not value else f"{key}={value}"
    return f" Settings are written without dashes. Did you mean {word}{'' if '=' in word or ' ' in word else '='}?"


def _hint(name: str, value: Any, command: str, known: Collection[str]) -> str | None:
    """What a key that is not there most likely means: a task by its name, a word of another program, or the nearest
    key."""
    if "." in name and (near := _in_its_group(name, known)):
        return near
    meant = other_words.meant(name, command, known)
    if meant in TASK_GROUPS:
        of = next((group for group in TASK_GROUPS if group in known and value in options.choices(group)), None)
        return f"{of}={value}" if of else meant
    return meant or nearest(name, list(known))


def _in_its_group(name: str, known: Collection[str]) -> str | None:
    """The key of the same group, or of a group of nearly the same name, that is nearly spelled so."""
    group, _, last = name.partition(".")
    ours = difflib.get_close_matches(group, {key.partition(".")[0] for key in known if "." in key}, 1, cutoff=0.8)
    rest = {key.partition(".")[2]: key for key in known if ours and key.startswith(f"{ours[0]}.")}
    near = difflib.get_close_matches(last, rest, 1, cutoff=0.8)
    return rest[near[0]] if near else None


def _unknown_key(name: str, value: Any, values: dict[str, Any], command: str, added: bool) -> str:
    groups = options.groups(command)
    for group, choice in options.every_choice(command):
        if group in (name.partition(".")[0], "bench") and name in (key.name for key in options.keys(group, choice)):
            return f"'{name}' is a setting of {group}={choice}, which is not chosen."
    answer = other_words.answer(name, value)
    if name.partition(".")[0] in groups and answer == other_words.answer(name, None):  # whatever the value is
        answer = None  # it is a key of ours that is misspelt
    if answer:
        hint = f" {answer}"
    else:
        near = _hint(name, value, command, [*values, *groups])
        hint = f" Did you mean {near}?" if near and "=" in near else f" Did you mean '{near}'?" if near else ""
    return f"unknown key '{'+' if added else ''}{name}'.{hint} 'rearrange {command} --help' lists every key."


def nearest(name: str, known: list[str]) -> str | None:
    """The key that was probably meant: the same last part, else the closest spelling of the whole or the last part."""
    last = name.split(".")[-1]
    by_last: dict[str, str] = {}
    for key in known:
        by_last.setdefault(key.split(".")[-1], key)
    if last in by_last:
        return by_last[last]
    for part, key in by_last.items():
        if last == "".join(word[0] for word in part.split("_")) and len(last) > 1:
            return key  # lr is learning_rate
    whole = difflib.get_close_matches(name, known, 1, cutoff=0.7)
    part = difflib.get_close_matches(last, by_last, 1, cutoff=0.7)
    return whole[0] if whole else by_last[part[0]] if part else None


def checked_values(values: dict[str, Any], lines: dict[str, Key]) -> dict[str, Any]:
    """Every value in the type of the rule of its key. UserError for one that this refuses."""
    try:
        read = dict(leaves(resolved(nested(values)))) if "${" in str(values) else dict(values)
    except ValueError as error:
        raise UserError(f"cannot read a value: {error}.") from error
    if group := next((name for name in values if name not in read), None):
        raise UserError(f"{group}={values[group]} is not allowed: that is a group of settings.")
    values = read
    for name, value in list(values.items()):
        right = _converted(name, value, lines[name].rule, HINTS.get(name, "")) if name in lines else value
        if type(right) is not type(value):  # else it stands as it was typed: [1, 2] for a list of numbers
            values[name] = right
    return values


def _converted(name: str, value: Any, rule: Rule, hint: str = "") -> Any:
    """A value in the type of its rule. UserError, with `hint` behind it, where that refuses it."""
    try:
        return converted(rule, name, value, hint)
    except NotAllowed as error:
        raise UserError(str(error)) from None


def _check_together(values: dict[str, Any]) -> None:
    """Refuse settings of which each is right, and which cannot be together."""
    for low, high in (("policy.log_std_min", "policy.log_std_max"), ("trainer.min_batch", "trainer.max_batch")):
        least, most = values.get(low), values.get(high)
        if least is not None and most is not None and least > most:
            raise UserError(f"{low}={least} is greater than {high}={most}: raise {high}= or lower {low}=.")
    image_size, encoder = values.get("policy.image_size", 0), values.get("policy.encoder")
    if encoder and 0 < image_size < SMALLEST_IMAGE:
        raise UserError(f"policy.image_size={image_size} is too small for policy.encoder={encoder}: take "
                        f"{SMALLEST_IMAGE} or more, or policy=blind, which has no image.")
    imitation = values.get("ppo.imitation_coef")
    if imitation and any(f"{group}.name" in values for group in TASK_GROUPS):
        group = next(group for group in TASK_GROUPS if f"{group}.name" in values)
        if (name := values[f"{group}.name"]) not in ADVISED.get(group, ()):
            others = " or ".join(f"{group}={name}" for group, names in ADVISED.items() for name in names)
            raise UserError(f"ppo.imitation_coef={imitation} needs an expert that can be asked in every state, which "
                            f"{CALLED[group]} {name} does not have: set it to 0, or train {others}.")
    if "policy.encoder" in values and values.get("skill.observation_keys") == ["depth"] and not (
            image_size and encoder):
        raise UserError("skill.observation_keys=[depth] leaves a policy without an image nothing to see: choose "
                        "policy=light, or add other observations.")
