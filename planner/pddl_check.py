"""Checks whether the planner understands a PDDL text. The parser itself accepts a lot that it then quietly misreads.

The planner understands STRIPS with leaf types and `(either a b)`: conjunctions of atoms, negation in effects only.
Everything else, and everything that refers to something undeclared, is refused with file, line and what was expected
instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rearrange.home.errors import UserError

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+|\n")
_NO_STRIPS = ("or", "not", "imply", "forall", "exists", "when", "=")
_OF_PDDL = ("object", "either", "number")  # names of types that mean something of their own; every type is an object
_OPTIONAL = (":requirements", ":constants")
_NAME = re.compile(r"[a-z][a-z0-9_-]*$")
_DEEPEST = 50  # lists inside one another; reading goes as deep


@dataclass
class Node:
    """One word, or one list in parentheses, and the line where it begins."""

    line: int
    word: str | None = None
    items: list[Node] = field(default_factory=list)

    @property
    def head(self) -> str | None:
        """First word of a list."""
        return self.items[0].word if self.items else None

    def __str__(self) -> str:
        text = self.word if self.word is not None else f"({' '.join(map(str, self.items))})"
        return text if len(text) <= 40 else text[:37] + "..."


@dataclass(frozen=True)
class Declared:
    """What a domain declares."""

    name: str
    types: frozenset[str]
    predicates: dict[str, tuple[frozenset[str], ...]]  # name -> the types that each argument may have
    constants: dict[str, str]  # name -> type
    actions: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)  # name -> parameter -> types


@dataclass(frozen=True)
class Stated:
    """What a problem says."""

    name: str
    objects: dict[str, str]  # name -> type; the constants of the domain come first
    goal: tuple[tuple[str, ...], ...]


class Checker:
    """Checks one file; every complaint names it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, line: int, expected: str, found: object) -> None:
        raise UserError(f"{self.path}, line {line}: expected {expected}, found {found}.")

    # ------------------------------------------------------------------ reading

    def read(self, text: str) -> Node:
        """The one list of a file."""
        root, stack, line = Node(0), [], 1
        for token in _TOKEN.findall(text):
            if token == "\n":
                line += 1
            elif token == "(":
                if len(stack) >= _DEEPEST:
                    self.fail(line, f"at most {_DEEPEST} lists inside one another", "one more")
                node = Node(line)
                (stack[-1] if stack else root).items.append(node)
                stack.append(node)
            elif token == ")":
                if not stack:
                    self.fail(line, "the end of the file, as every '(' is closed", "')'")
                stack.pop()
            elif not token.startswith(";"):
                inner = stack[-1] if stack else root
                if token.startswith(":") and not inner.items and len(stack) > 2:  # a section inside a section
                    outer = stack[-2]
                    self.fail(line, f"')' to close the '({outer.head or ''}' of line {outer.line}", f"'({token}'")
                inner.items.append(Node(line, token))
        if stack:
            inner = stack[-1]
            self.fail(line, f"')' to close the '({inner.head or ''}' of line {inner.line}", "the end of the file")
        if not root.items:
            self.fail(1, "(define ...)", "an empty file")
        if len(root.items) > 1:
            self.fail(root.items[1].line, "the end of the file after (define ...)", root.items[1])
        return root.items[0]

    def sections(self, text: str, kind: str, known: Sequence[str]) -> tuple[str, dict[str, list[Node]]]:
        """Name of a (define (`kind` name) ...), and its sections by their heads.

        All heads are among `known`, and all of these but the optional ones are there.
        """
        root = self.read(text)
        if root.head != "define":
            self.fail(root.line, f"(define ({kind} name) ...)", root)
        title = root.items[1] if len(root.items) > 1 else root
        if title.head != kind or len(title.items) != 2 or title.items[1].word is None:
            self.fail(title.line, f"({kind} name) after define", title)
        found: dict[str, list[Node]] = {}
        for node in root.items[2:]:
            if node.head not in known:
                self.fail(node.line, f"one of {', '.join(f'({name} ...)' for name in known)}", node)
            if node.head in found and node.head != ":action":
                self.fail(node.line, f"({node.head} ...) once", "a second one")
            found.setdefault(node.head, []).append(node)
        for name in known:
            if name not in found and name not in _OPTIONAL:
                self.fail(1, f"a section ({name} ...)", "none")
        return title.items[1].word, found

    # ------------------------------------------------------------------ files

    def domain(self, text: str) -> Declared:
        """Check a domain; return what it declares."""
        known = (":requirements", ":types", ":constants", ":predicates", ":action")
        name, sections = self.sections(text, "domain", known)
        types = self._types(sections[":types"][0].items[1:])
        constants = self._typed_names(sections[":constants"][0].items[1:], types) if ":constants" in sections else {}
        predicates = {}
        for node in sections[":predicates"][0].items[1:]:
            if not node.head or node.head in ("and", *_NO_STRIPS) or not _NAME.match(node.head):
                self.fail(node.line, "(predicate ?argument - type ...)", node)
            if node.head in predicates:
                self.fail(node.line, "every predicate once", f"a second {node.head}")
            predicates[node.head] = tuple(self._parameters(node.items[1:], types).values())
        declared = Declared(name, types, predicates, constants)
        for action in sections[":action"]:
            parameters = self._action(action, declared)
            action_name = action.items[1].word
            if action_name in declared.actions:
                self.fail(action.line, "every action once", f"a second {action_name}")
            declared.actions[action_name] = parameters
        return declared

    def problem(self, text: str, domain: Declared, known: Mapping[str, str] | None = None) -> Stated:
        """Check a problem of a domain, whose objects have to be among `known` (name -> type) if it is given."""
        known_sections = (":domain", ":requirements", ":objects", ":init", ":goal")
        name, sections = self.sections(text, "problem", known_sections)
        named = sections[":domain"][0]
        if len(named.items) != 2 or named.items[1].word != domain.name:
            self.fail(named.line, f"(:domain {domain.name})", named)
        listed = sections[":objects"][0].items[1:]
        objects = domain.constants | self._typed_names(listed, domain.types, known, domain.constants)
        scope = {name: frozenset([kind]) for name, kind in objects.items()}
        for node in sections[":init"][0].items[1:]:
            self._atom(node, domain, scope, "a fact (predicate object ...)")
        goal = sections[":goal"][0]
        if len(goal.items) != 2:
            self.fail(goal.line, "(:goal (and ...))", goal)
        atoms = list(self._conjunction(goal.items[1]))
        if not atoms:
            self.fail(goal.line, "at least one fact in the goal", goal)
        for node in atoms:
            self._atom(node, domain, scope, "a fact (predicate object ...), neither negated nor quantified")
        return Stated(name, objects, tuple(tuple(item.word for item in node.items) for node in atoms))

    # ------------------------------------------------------------------ parts

    def _action(self, node: Node, domain: Declared) -> dict[str, frozenset[str]]:
        """Check an action; return the types that each of its parameters may have."""
        items = node.items[1:]
        if not items or items[0].word is None or not _NAME.match(items[0].word):
            self.fail(node.line, "(:action name :parameters ... :precondition ... :effect ...)", node)
        parts: dict[str, Node] = {}
        for key, value in zip(items[1::2], items[2::2]):
            if key.word not in (":parameters", ":precondition", ":effect"):
                self.fail(key.line, ":parameters, :precondition or :effect", key)
            if key.word in parts:
                self.fail(key.line, f"{key.word} once in action {items[0].word}", "a second one")
            parts[key.word] = value
        if len(items) % 2 == 0:
            self.fail(items[-1].line, f"something after {items[-1]} in action {items[0].word}", "none")
        for required in (":parameters", ":precondition", ":effect"):
            if required not in parts or parts[required].word is not None:
                self.fail(node.line, f"{required} (...) in action {items[0].word}", parts.get(required, "none"))
        parameters = self._parameters(parts[":parameters"].items, domain.types)
        scope = parameters | {name: frozenset([kind]) for name, kind in domain.constants.items()}
        for atom in self._conjunction(parts[":precondition"]):
            self._atom(atom, domain, scope, "an atom (predicate ?argument ...) or (and ...) of atoms")
        for atom in self._conjunction(parts[":effect"]):
            if atom.head == "not" and len(atom.items) == 2:
                atom = atom.items[1]
            self._atom(atom, domain, scope, "an atom, (not atom) or (and ...) of those")
        return parameters

    def _conjunction(self, node: Node) -> Iterator[Node]:
        """The atoms of (and ...), of one atom, or of ()."""
        if node.head == "and":
            for item in node.items[1:]:
                yield from self._conjunction(item)
        elif node.items or node.word is not None:
            yield node

    def _atom(self, node: Node, domain: Declared, scope: dict[str, frozenset[str]], expected: str) -> None:
        if node.word is not None or node.head is None or node.head in _NO_STRIPS:
            self.fail(node.line, expected, node)
        if node.head not in domain.predicates:
            self.fail(node.line, f"a predicate of the domain ({', '.join(domain.predicates)})", f"{node.head!r}")
        kinds = domain.predicates[node.head]
        if len(node.items) - 1 != len(kinds):
            self.fail(node.line, f"{len(kinds)} arguments of {node.head}", f"{len(node.items) - 1} in {node}")
        for item, allowed in zip(node.items[1:], kinds):
            if item.word not in scope:
                self.fail(item.line, f"something declared ({', '.join(scope)})", f"{item} in {node}")
            if not scope[item.word] <= allowed:
                what = " or ".join(sorted(allowed))
                self.fail(item.line, f"a {what} in {node}", f"{item}, a {' or '.join(sorted(scope[item.word]))}")

    def _types(self, nodes: list[Node]) -> frozenset[str]:
        types: set[str] = set()
        for node in nodes:
            if node.word is None or node.word in _OF_PDDL or not _NAME.match(node.word):
                self.fail(node.line, "a type without a parent, which is not called object", node)
            if node.word in types:
                self.fail(node.line, "every type once", f"a second {node.word}")
            types.add(node.word)
        return frozenset(types)

    def _typed_names(self, nodes: list[Node], types: frozenset[str], known: Mapping[str, str] | None = None,
                     taken: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Objects or constants by their names; `taken`: those that there are already."""
        named: dict[str, str] = {}
        for node, kinds in self._typed(nodes, types, ""):
            name = node.word
            if len(kinds) != 1 or name in named or name in taken:
                self.fail(node.line, "every object once, with one type", name)
            (kind,) = kinds
            if known is not None and known.get(name) != kind:
                there = ", ".join(f"{each} - {of}" for each, of in known.items())
                self.fail(node.line, f"only objects that the episode has ({there})", f"{name} - {kind}")
            named[name] = kind
        return named

    def _parameters(self, nodes: list[Node], types: frozenset[str]) -> dict[str, frozenset[str]]:
        named = {}
        for node, kinds in self._typed(nodes, types, "?"):
            if node.word in named:
                self.fail(node.line, "every parameter once", node.word)
            named[node.word] = kinds
        return named

    def _typed(self, nodes: list[Node], types: frozenset[str], mark: str) -> list[tuple[Node, frozenset[str]]]:
        """`a b - t c - (either t u)` as (the word of a name, types); names begin with `mark`."""
        result, waiting, i = [], [], 0
        while i < len(nodes):
            node = nodes[i]
            if node.word == "-":
                kind = nodes[i + 1] if i + 1 < len(nodes) else node
                names = [item.word for item in kind.items[1:]] if kind.head == "either" else [kind.word]
                if not waiting or not names or not set(names) <= types:
                    self.fail(kind.line, f"name - type, of the types {', '.join(sorted(types))}", kind)
                result += [(word, frozenset(names)) for word in waiting]
                waiting = []
                i += 2
                continue
            if node.word is None or not node.word.startswith(mark) or not _NAME.match(node.word.removeprefix(mark)):
                self.fail(node.line, f"{mark}name - type", node)
            waiting.append(node)
            i += 1
        if waiting:
            known = ", ".join(sorted(types))
            self.fail(nodes[-1].line, f"a type after {waiting[-1].word}: name - type, of {known}", "none")
        return result
