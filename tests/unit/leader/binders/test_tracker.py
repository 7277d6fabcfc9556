"""When a bind without an outcome is overdue."""

from dsched.leader.binders.tracker import Pace

PATIENCE_S = 5.0


def test_overdue_when_nothing_comes_any_more() -> None:
    pace = Pace()
    assert not pace.overdue(100.0, PATIENCE_S, 105.0)
    assert pace.overdue(100.0, PATIENCE_S, 105.1)


def test_not_overdue_while_binders_work_through_what_was_handed_out_before() -> None:
    pace = Pace()
    pace.settled(100.5, 130.0)
    assert not pace.overdue(100.0, PATIENCE_S, 131.0), "binds of about the same time have just been settled"
    assert not pace.overdue(104.0, PATIENCE_S, 131.0), "it was handed out later than what is settled so far"


def test_overdue_when_what_was_handed_out_well_after_it_is_settled() -> None:
    pace = Pace()
    pace.settled(106.0, 131.0)
    pace.settled(90.0, 131.0)
    assert pace.overdue(100.0, PATIENCE_S, 131.0)
