"""What a sweep may set a key to: `key=1,2`, choice(), range(), interval(), glob(), and the functions around them.

Hydra's sweepers read these words differently. The basic one takes range() without its stop. Optuna's takes it with
its stop, if it rises; without it once it is shuffled; and its grid sampler takes it without the last value. What is
checked before the first job is what the chosen sweeper can ask for; of a sweeper that is not known here, what any of
them could. """

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hydra.core.override_parser.types import Glob, IntervalSweep, Override, Quote, QuotedString, RangeSweep

from rearrange.command_line.composition import options
from rearrange.command_line.composition import parse_overrides as front
from rearrange.home.errors import UserError

MOST_JOBS = 10_000
MOST_CHECKED = 200  # values of one key, and combinations of them, where a sweeper chooses among more


@dataclass(frozen=True)
class Sweeper:
    """What says which jobs there are; `grid`: Optuna's grid sampler."""

    name: str = "basic"
    grid: bool = False

    @property
    def is_basic(self) -> bool:
        return self.name == "basic"

    @property
    def is_optuna(self) -> bool:
        return self.name == "optuna"

    @property
    def is_population(self) -> bool:
        return self.name == "population"


@dataclass(frozen=True)
class Swept:
    """A key with several values."""

    key: str
    values: Sequence[str]  # as jobs get them: all of them, or those that stand for a long range and an interval
    count: float  # how many there are; infinite for an interval
    asked: str  # the word that a sweeper gets


def read(command: str, word: str, sweeper: Sweeper = Sweeper()) -> Swept:
    """What `sweeper` can set the key of a word to. UserError for a word that it cannot take."""
    override = front.parse(command, word)
    front.check_shape(override)
    key, value = override.get_key_element(), override.value()
    if "log" in getattr(value, "tags", ()) and not isinstance(value, IntervalSweep):
        raise UserError(f"'{word}': the tag log has a meaning for interval() alone; list the values, as "
                        f"{key}=1,10,100.")
    if isinstance(value, IntervalSweep):
        values, count = _interval(word, key, value, sweeper)
    elif isinstance(value, RangeSweep):
        values, count = _range(word, key, value, sweeper)
    else:
        values, tokens = _choices(command, word, override)
        if sweeper.grid and len({isinstance(item, int | float) for item in getattr(value, "list", ())}) > 1:
            raise UserError(f"'{word}': hydra/sweeper/sampler=grid sorts its values, and cannot compare numbers with "
                            "others; take another sampler, or values of one type.")
        return Swept(key, values, len(set(values)), _choice(key, tokens))
    # whose order has no meaning for a sweeper that chooses, and would differ each time
    if getattr(value, "shuffle", False):
        return Swept(key, values, count, _choice(key, values))
    return Swept(key, values, count, override.input_line)


def expand(command: str, words: list[str]) -> list[dict[str, str]]:
    """The jobs of a sweep: for each, its swept keys and their values; words without a sweep are in none of them."""
    swept = {each.key: each.values for word in words if is_swept(command, word) for each in (read(command, word),)}
    if (count := math.prod(map(len, swept.values()))) > MOST_JOBS:
        raise UserError(f"these are {count:,} jobs: a sweep has {MOST_JOBS:,} at most.")
    return [dict(zip(swept, values, strict=True)) for values in itertools.product(*swept.values())]


def checked_combinations(swept: Sequence[Swept]) -> Iterator[dict[str, str]]:
    """Combinations that stand for all that a sweeper may ask for: all of them if they are few, else each value of
    each key beside the first ones of the others, and the first and last ones of all with each other."""
    keys = [each.key for each in swept]
    if math.prod(len(each.values) for each in swept) <= MOST_CHECKED:
        return (dict(zip(keys, values, strict=True)) for values in itertools.product(*(each.values for each in swept)))
    first = {each.key: each.values[0] for each in swept}
    ends = itertools.product(*(dict.fromkeys((each.values[0], each.values[-1])) for each in swept))
    return itertools.chain(({**first, each.key: value} for each in swept for value in each.values),
                           (dict(zip(keys, values, strict=True)) for values in itertools.islice(ends, MOST_CHECKED)))


def is_swept(command: str, word: str) -> bool:
    """Whether an override names several values."""
    return front.parse(command, word).is_sweep_override()


def fixed(command: str, words: list[str]) -> list[str]:
    """The words that name one value each, the same in all jobs."""
    return [word for word in words if not is_swept(command, word)]


def last_of_each(words: list[str]) -> list[str]:
    """Of words with the same key the last one, which counts."""
    return list({word.partition("=")[0].lstrip("+"): word for word in words}.values())


def _choices(command: str, word: str, override: Override) -> tuple[list[str], list[str]]:
    """The values of a choice as jobs get them, and as a sweeper does, whose values must come back as they are."""
    key, value = override.key_or_group, override.value()
    if isinstance(value, Glob):
        if key not in options.groups(command):
            raise UserError(f"'{word}': glob() is for groups of choices, and {key} is none; list its values, as "
                            f"{key}=1,2,3.")
        found = value.filter(options.choices(key))
        if not found:
            raise UserError(f"'{word}' matches no choice. Choices: {', '.join(options.choices(key))}.")
        return found, found
    if front.text_rule(command, key):
        texts = [None if item is None else str(getattr(item, "text", item)) for item in value.list]
        return [as_typed(text) for text in texts], ["null" if text is None else _token(text) for text in texts]
    strings = [Override._get_value_element_as_str(item) for item in value.list]
    numbers = {string: item for string, item in zip(strings, value.list, strict=True) if type(item) in (int, float)}
    if len(set(numbers.values())) < len(numbers):
        raise UserError(f"'{word}' names a number twice, in two forms; each would be a job of its own.")
    return strings, [_token(item) if isinstance(item, str) else string
                     for item, string in zip(value.list, strings, strict=True)]


def _choice(key: str, tokens: Sequence[str]) -> str:
    """The word for some values; choice() takes no null, and one value alone is none to choose from."""
    return f"{key}={','.join(tokens)}" if len(tokens) > 1 else f"{key}=choice({tokens[0]})"


def as_typed(text: str | None) -> str:
    """A text without the escapes that Hydra would need, unless it would be read as something else."""
    if text is None:
        return "null"
    return _quoted(text) if not text or "," in text or "${" in text or text == "null" or text[0] in "'\"" else text


def _token(text: str) -> str:
    """A text that Hydra reads as itself."""
    is_plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text,
                            re.ASCII) and text.lower() not in ("null", "true", "false", "nan", "inf")
    return text if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    return QuotedString(text, Quote.single).with_quotes()


def _interval(word: str, key: str, value: IntervalSweep, sweeper: Sweeper) -> tuple[list[str], float]:
    """The ends of an interval and something between them; of integers as many as of a range."""
    start, end = value.start, value.end
    if sweeper.is_basic or sweeper.grid:
        what = "let hydra/sweeper=optuna choose" if sweeper.is_basic else "leave hydra/sweeper/sampler=grid out"
        raise UserError(f"'{word}' is a continuous interval; list its values instead, as {key}=1,2,3, or {what}.")
    if not (math.isfinite(start) and math.isfinite(end) and start <= end):
        raise UserError(f"'{word}': an interval needs two finite numbers, the smaller one first.")
    if "log" in value.tags and start <= 0:
        raise UserError(f"'{word}': an interval on a logarithmic scale must begin above 0.")
    if isinstance(start, int) and isinstance(end, int):
        return _spread(start, 1, end - start + 1), end - start + 1
    return [str(each)
            for each in dict.fromkeys((start, start + (end - start) / 3 ** 0.5, end))], math.inf if start < end else 1


def _range(word: str, key: str, value: RangeSweep, sweeper: Sweeper) -> tuple[list[str], int]:
    """The values of a range as a sweeper takes them."""
    start, stop, step = value.start, value.stop, value.step
    if not all(map(math.isfinite, (start, stop, step))) or step == 0:
        raise UserError(f"'{word}': range() needs finite numbers, and a step that is not 0.")
    if re.search(r"\breverse\s*=\s*true", word,
                 re.IGNORECASE) and abs((parts := (stop - start) / step) - round(parts)) > 1e-6:
        raise UserError(f"'{word}': of a reversed range whose stop is no multiple of its step away, Hydra makes "
                        f"values that the range does not have; list them instead, as {key}=7,4,1.")
    count = max(0, math.ceil((stop - start) / step))
    most = MOST_JOBS if sweeper.is_basic or value.shuffle else math.inf
    if count > most:
        raise UserError(f"'{word}' has {count:,} values: {MOST_JOBS:,} are the most.")
    if sweeper.is_optuna and not value.shuffle:
        return _optuna_range(word, start, stop, step, sweeper.grid)
    if sweeper.is_population:
        if count > MOST_CHECKED:
            raise UserError(f"'{word}' has {count:,} values: write {key}=interval({start},{stop}).")
        found = _spread(start, step, count)
    else:
        found = [str(each) for each in value.range()] if count <= MOST_JOBS else _spread(start, step, count)
    takes_no_stop = sweeper.is_basic or sweeper.is_population or value.shuffle
    if not takes_no_stop and (stop - start) / step >= 0:  # it may take the stop, too
        steps = _steps(start, stop, step)
        found = list(dict.fromkeys([*found, *_spread(start, step, steps + 1)]))
    if not found:
        raise UserError(f"'{word}' has no value: its stop does not lie behind its start.")
    return found, len(found)


def _optuna_range(word: str, start: float, stop: float, step: float, grid: bool) -> tuple[list[str], int]:
    """With the stop if a step ends there; of the grid sampler without the last value."""
    if step < 0 or start > stop:
        raise UserError(f"'{word}': hydra/sweeper=optuna takes ranges that rise; list the values, or write the "
                        "smaller end first.")
    count = _steps(start, stop, step) + 1
    if grid:
        last = start + (count - 1) * step if isinstance(step, int) else float(_at(start, step, count - 1))
        count = int((last - start) // step)
        if not count:
            raise UserError(f"'{word}' has no value: hydra/sweeper/sampler=grid leaves out the last one; list the "
                            "values.")
    values = _spread(start, step, count)
    is_float = any(isinstance(each, float) for each in (start, stop, step))
    return [str(float(value)) for value in values] if is_float else values, count


def _steps(start: float, stop: float, step: float) -> int:
    """How many whole steps lead from start to stop, in decimal numbers, as they are typed."""
    return int((Decimal(str(stop)) - Decimal(str(start))) // Decimal(str(step)))


def _spread(start: float, step: float, count: int) -> list[str]:
    """Values of a range: all, or the first two, the last one, and some between."""
    chosen: Any = range(count)
    if count > MOST_CHECKED:
        chosen = sorted({0, 1, *(number * (count - 1) // (MOST_CHECKED - 1) for number in range(MOST_CHECKED))})
    if isinstance(start, int) and isinstance(step, int):
        return [str(start + number * step) for number in chosen]
    return [str(float(_at(start, step, number))) for number in chosen]


def _at(start: float, step: float, number: int) -> Decimal:
    """The value of a range after so many steps."""
    return Decimal(str(start)) + number * Decimal(str(step))
