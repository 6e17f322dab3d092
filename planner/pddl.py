"""PDDL text to a grounded task, with pddlpy as parser and grounder.

pddlpy 0.3.3 compares types by name alone, so that it has no object for `(either a b)`, and it leaves out a parameter
for which there is no object. It prints its complaints and goes on. So names and types are those that `pddl_check` read,
complaints are errors, and `pddl_check` first refuses what pddlpy would misread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from antlr4 import CommonTokenStream, InputStream, ParseTreeWalker
from antlr4.error.ErrorListener import ErrorListener
from pddlpy import DomainProblem
from pddlpy.pddl import DomainListener, ProblemListener
from pddlpy.pddlLexer import pddlLexer
from pddlpy.pddlParser import pddlParser

from planner.pddl_check import Checker, Declared
from rearrange.home.errors import UserError
from rearrange.home.files import read_text as read_text_file

Atom = tuple[str, ...]  # predicate and its arguments
DOMAIN_FILE = Path(__file__).with_name("domain.pddl")
MOST_BYTES = 1 << 20  # of a PDDL file


@dataclass(frozen=True)
class Operator:
    """A grounded action."""

    name: str
    args: tuple[str, ...]
    preconditions: frozenset[Atom]
    add: frozenset[Atom]
    delete: frozenset[Atom]

    def __str__(self) -> str:
        return " ".join((self.name, *self.args))


@dataclass(frozen=True)
class Task:
    """A planning task in STRIPS: what is true, what shall be true, and what can be done."""

    name: str
    objects: dict[str, str]  # object -> type, in the order of the problem
    init: frozenset[Atom]
    goal: frozenset[Atom]
    operators: tuple[Operator, ...]  # in the order of the domain, and of the objects in the problem


def ground(problem: str, problem_path: str | Path, domain_path: Path = DOMAIN_FILE,
           known: Mapping[str, str] | None = None) -> Task:
    """The task of a problem text.

    Args:
        problem: PDDL text.
        problem_path: the file that the text comes from, for messages.
        known: name -> type of all the objects that there are.

    Raises:
        UserError: the text cannot be understood; it names file, line and what was expected.
    """
    declared, listener = _domain(domain_path)
    text = problem.lower()
    stated = Checker(str(problem_path)).problem(text, declared, known)
    space = {name: {parameter: [thing for thing, kind in stated.objects.items() if kind in kinds]
                    for parameter, kinds in parameters.items()} for name, parameters in declared.actions.items()}
    both = _Parsed(listener, _walk(text, str(problem_path), "problem", ProblemListener()), space)
    operators = [Operator(grounded.operator_name, tuple(grounded.variable_list[parameter] for parameter in parameters),
                          frozenset(grounded.precondition_pos), frozenset(grounded.effect_pos),
                          frozenset(grounded.effect_neg))
                 for name, parameters in declared.actions.items() for grounded in both.ground_operator(name)]
    init = frozenset(tuple(atom.predicate) for atom in both.initialstate())
    return Task(stated.name, stated.objects, init, frozenset(stated.goal), tuple(operators))


def goal_atoms(problem: str, problem_path: str | Path, known: Mapping[str, str],
               domain_path: Path = DOMAIN_FILE) -> tuple[Atom, ...]:
    """What a problem text asks for; a text that cannot be understood is refused as in `ground`."""
    return Checker(str(problem_path)).problem(problem.lower(), _domain(domain_path)[0], known).goal


def domain_of(problem: str, problem_path: Path) -> Path:
    """The domain of a problem text: `(:domain home)` is ours, `(:domain kitchen)` is kitchen.pddl beside the problem.

    Kitchen.pddl is ours with further actions, for skills of installed packages. UserError where it is not.
    """
    text = re.sub(r";[^\n]*", "", problem.lower())
    name = re.search(r"\(\s*:domain\s+([a-z][a-z0-9_-]*)\s*\)", text)
    if not name or name[1] == "home":
        return DOMAIN_FILE
    beside = problem_path.with_name(f"{name[1]}.pddl")
    if beside == problem_path or not beside.is_file():
        line = text.count("\n", 0, name.start()) + 1
        raise UserError(f"{problem_path}, line {line}: expected (:domain home), or a file {beside.name} beside it that "
                        f"defines the domain {name[1]}; found neither.")
    ours, theirs = _domain(DOMAIN_FILE)[0], _domain(beside)[0]
    if theirs.name != name[1]:
        raise UserError(f"{beside}: the domain is called {theirs.name}, and its problems name {name[1]}: begin the "
                        f"file with (define (domain {name[1]}).")
    if other := sorted(theirs.predicates.items() - ours.predicates.items(), key=str):
        raise UserError(f"{beside}: the predicate {other[0][0]} is not one that can be observed; a domain has those of "
                        f"{DOMAIN_FILE}, with the same types: {', '.join(ours.predicates)}.")
    return beside


def read_text(path: Path) -> str:
    """The text of a PDDL file, which some editors begin with a byte order mark."""
    try:
        return read_text_file(path, MOST_BYTES, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UserError(f"cannot read the PDDL file {path}: {reason}.") from None


class _Parsed(DomainProblem):
    """pddlpy's DomainProblem of texts that were parsed already. space: action -> parameter -> the objects it may be."""

    def __init__(self, domain: DomainListener, problem: ProblemListener,
                 space: dict[str, dict[str, list[str]]]) -> None:
        self.domain, self.problem, self.vargroundspace = domain, problem, space


class _Complaint(ErrorListener):
    """The first complaint of pddlpy's grammar as a UserError instead of a printed line."""

    def __init__(self, path: str) -> None:
        self.path = path

    def syntaxError(self, recognizer, offendingSymbol, line, column, msg, e) -> None:  # noqa: N802, N803
        found = getattr(offendingSymbol, "text", None) or "a character that PDDL does not know"
        _, _, expected = msg.partition("expecting ")
        raise UserError(f"{self.path}, line {line}: expected {expected or 'PDDL (' + msg + ')'}, found {found!r}.")


@lru_cache(maxsize=8)
def _domain(path: Path) -> tuple[Declared, DomainListener]:
    text = read_text(path).lower()
    return Checker(str(path)).domain(text), _walk(text, str(path), "domain", DomainListener())


def _walk(text: str, path: str, rule: str, listener: DomainListener | ProblemListener):
    """Parse a text by a rule of pddlpy's grammar and let the listener read it."""
    lexer = pddlLexer(InputStream(text))
    parser = pddlParser(CommonTokenStream(lexer))
    for part in (lexer, parser):
        part.removeErrorListeners()
        part.addErrorListener(_Complaint(path))
    ParseTreeWalker().walk(listener, getattr(parser, rule)())
    return listener
