"""The interactions of Figure 6, by hand."""

from planner.stages import latch, stage_names, stages_now


def test_names_in_the_order_of_interactions():
    assert stage_names(2) == ["stage_0_5", "stage_1", "stage_1_5", "stage_2"]
    assert [len(stage_names(n)) for n in (5, 3, 2)] == [10, 6, 4]  # Tidy House, Prepare Groceries, Set Table


def test_stages_include_the_objects_before():
    assert stages_now([False, False], None, True) == [False] * 4
    assert stages_now([False, False], 0, False) == [True, False, False, False]
    assert stages_now([True, False], None, True) == [False, True, False, False]
    assert stages_now([True, False], 1, False) == [False, False, True, False]
    assert stages_now([False, False], 1, False) == [False] * 4, "object 2 in the hand, but object 1 is not at its goal"
    assert stages_now([False, True], None, True) == [False] * 4
    assert stages_now([True, True], None, True) == [False, True, False, True]


def test_the_hand_has_to_be_empty_but_for_the_last():
    assert stages_now([True, False, False], None, False) == [False] * 6  # something else is in the hand
    assert stages_now([True, True, False], None, False) == [False] * 6
    assert stages_now([True, True, True], None, False)[-1] is True
    assert stages_now([True], None, False) == [False, True]


def test_a_stage_stays_once_it_was_reached():
    reached = [False, False]
    for now in ([True, False], [False, False], [False, True], [False, False]):
        reached = latch(reached, now)
    assert reached == [True, True]
    assert latch([False, False], [False, True]) == [False, True]
