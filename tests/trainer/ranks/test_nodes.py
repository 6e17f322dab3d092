"""Machines of several ranks that differ: one sentence for each."""

from pathlib import Path

from trainer.ranks.launch import Node, differences

RUN = Path("outputs/train/pick/a")


def test_machines_that_agree_are_not_told_of():
    assert not differences([Node("n1", 100.0, True), Node("n2", 103.0, True)], RUN)


def test_a_clock_that_differs_is_told_once_for_each_machine():
    (ahead, behind) = differences([Node("n1", 1000.0, True), *[Node("n2", 1300.0, True)] * 2, Node("n3", 988.0, True)],
                                  RUN)
    assert "n2 is 300 s ahead of that of n1" in ahead + behind and "n3 is 12 s behind that of n1" in ahead + behind


def test_a_machine_that_does_not_see_the_run_is_told():
    (told,) = differences([Node("n1", 0.0, True), Node("n2", 0.0, False)], RUN)
    assert told.startswith(f"n2 does not see {RUN}: ") and "output=" in told
