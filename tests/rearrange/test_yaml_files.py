"""YAML is read and written as OmegaConf does it, mistakes included."""

from __future__ import annotations

import io

import pytest
from omegaconf import OmegaConf

from rearrange.home.settings.yaml_files import MOST_DEPTH, as_yaml, plain_yaml

NUMBERS = ("1", "-2.5e3", "1e-5", ".5", "1.", "1_000", "0x1f", "010", "+1", "'1'", "yes", "No", "on", "null", "~",
           "2020-01-01", "12:30:45", ".inf", "=")


@pytest.mark.parametrize("text", [
    "", "~", "a", "3", *(f"- {number}" for number in NUMBERS), "a: 1\na: 2", "1: 2", "true: 3", "a: !!binary aGk=",
    "a: !!set {x, y}", "a: ${b}\nb: 2", "a: ${", "a: ???", "? [1,2]\n: 3", "a: |\n  x\n  y\n", "--- a\n--- b\n",
    "a: !foo 3", "a: {b: [1, {c: null}]}", "[", "\t: x", "a: b: c", "\"\\x00\"", "<<: {a: 1}\nb: 2",
    "a: !!python/object/apply:pathlib.Path [x]"])
def test_it_is_what_omegaconf_reads(text, tmp_path):
    def told(read):
        try:
            return repr(read())
        except Exception:  # which of the two says it, and in which words, does not matter
            return "no YAML"

    (tmp_path / "a.yaml").write_text(text)
    assert told(lambda: plain_yaml(tmp_path / "a.yaml")) == told(
        lambda: OmegaConf.to_container(OmegaConf.load(io.StringIO(text))))


@pytest.mark.parametrize("value", [
    *NUMBERS, "", " x", "a: b", "${seed}", "é", "\n", "\ud800", "1e6", "nan", "true", "-", "#", True, None, 1, 1.0,
    1e-7, float("inf"), (1, 2), [[]], {}, {"b": {"c": (0.5,)}}])
def test_it_is_written_as_omegaconf_writes_it(value):
    for values in ({"a": value, "name": "x"}, [value, "x"]):
        assert as_yaml(values) == OmegaConf.to_yaml(values)


def test_a_list_that_stands_in_two_places_is_written_twice():
    shared = [1, 2]
    assert as_yaml({"a": shared, "b": shared}) == OmegaConf.to_yaml({"a": [1, 2], "b": [1, 2]})


@pytest.mark.parametrize("depth", [MOST_DEPTH + 1, 1200])
def test_what_is_too_deep_is_said(depth, tmp_path):
    (tmp_path / "a.yaml").write_text("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match=f"nested more than {MOST_DEPTH} deep"):
        plain_yaml(tmp_path / "a.yaml")
