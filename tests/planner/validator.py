"""An independent judge of plans: reads domain and problem itself and applies the steps one after another.

Shares no code with the planner: its own reader of parentheses, its own instantiation, its own states.
"""

from __future__ import annotations

import itertools
import re


def _read(text: str):
    """Nested lists of words."""
    words = re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text).lower())
    stack: list[list] = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0][0]


def _typed(words: list) -> dict[str, object]:
    found, waiting, i = {}, [], 0
    while i < len(words):
        if words[i] == "-":
            found |= dict.fromkeys(waiting, words[i + 1])
            waiting = []
            i += 1
        else:
            waiting.append(words[i])
        i += 1
    return found


def _kinds(kind: object) -> list:
    """The types that `t`, or `(either t u)`, allows."""
    return kind[1:] if isinstance(kind, list) else [kind]


def operators(domain: str, problem: str) -> dict[tuple[str, ...], tuple[set, set, set]]:
    """Every grounded action, (name, arguments ...), with what it needs, adds and deletes."""
    sections = {node[0]: node[1:] for node in _read(domain)[1:] if node[0] == ":constants"} | {
        node[0]: node[1:] for node in _read(problem)[1:]}
    objects = {name: _kinds(kind)[0] for part in (":constants", ":objects")
               for name, kind in _typed(sections.get(part, [])).items()}
    found = {}
    for node in (node for node in _read(domain) if node[0] == ":action"):
        action = dict(zip(node[2::2], node[3::2]))
        parameters = _typed(action[":parameters"])
        effects = _atoms(action[":effect"])
        choices = [[name for name in objects if objects[name] in _kinds(kind)] for kind in parameters.values()]
        for args in itertools.product(*choices):
            bound = dict(zip(parameters, args))

            def facts(atoms: list, bound: dict = bound) -> set:
                return {tuple(bound.get(word, word) for word in atom) for atom in atoms}

            found[(node[1], *args)] = (
                facts(_atoms(action[":precondition"])), facts([atom for atom in effects if atom[0] != "not"]),
                facts([atom[1] for atom in effects if atom[0] == "not"]))
    return found


def _atoms(formula: list) -> list[list]:
    if formula and formula[0] == "and":
        return [atom for part in formula[1:] for atom in _atoms(part)]
    return [formula] if formula else []


def validate(domain: str, problem: str, plan: list[tuple[str, ...]]) -> str | None:
    """Why a plan, a list of (action, arguments ...), is wrong; None when it is right."""
    actions = {node[1]: dict(zip(node[2::2], node[3::2])) for node in _read(domain) if node[0] == ":action"}
    sections = {node[0]: node[1:] for node in _read(problem)[1:]}
    objects = _typed(sections[":objects"])
    state = {tuple(fact) for fact in sections[":init"]}
    for number, (name, *args) in enumerate(plan):
        if name not in actions:
            return f"step {number}: no action {name}"
        parameters = _typed(actions[name][":parameters"])
        if len(args) != len(parameters):
            return f"step {number}: {name} takes {len(parameters)} arguments"
        for arg, kind in zip(args, parameters.values()):
            if arg not in objects or objects[arg] not in _kinds(kind):
                return f"step {number}: {arg} is no {kind}"
        bound = dict(zip(parameters, args))
        for atom in _atoms(actions[name][":precondition"]):
            fact = tuple(bound.get(word, word) for word in atom)
            if fact not in state:
                return f"step {number}: {name} {' '.join(args)} needs {fact}"
        effects = _atoms(actions[name][":effect"])
        state -= {tuple(bound.get(word, word) for word in atom[1]) for atom in effects if atom[0] == "not"}
        state |= {tuple(bound.get(word, word) for word in atom) for atom in effects if atom[0] != "not"}
    missing = [fact for fact in _atoms(sections[":goal"][0]) if tuple(fact) not in state]
    return f"at the end {missing} is not true" if missing else None
