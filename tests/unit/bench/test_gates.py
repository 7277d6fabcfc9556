"""What a workload's feature gates come to."""

import pytest

from dsched.bench.gates import emulated


@pytest.mark.parametrize(
    ("gates", "told", "without_effect"),
    [
        ({}, "1.37", {}),
        ({"NodeDeclaredFeatures": True}, "1.37 NodeDeclaredFeatures=true", {}),
        ({"NodeDeclaredFeatures": False}, "1.36 NodeDeclaredFeatures=false", {}),
        ({"StorageCapacityScoring": False}, "1.37 StorageCapacityScoring=false", {}),
        ({"OpportunisticBatching": True}, "1.37 OpportunisticBatching=true", {"OpportunisticBatching": True}),
        ({"DynamicResourceAllocation": True}, "1.37 DynamicResourceAllocation=true", {}),
        ({"SchedulerQueueingHints": False}, "1.37", {"SchedulerQueueingHints": False}),
        ({"SchedulerPopFromBackoffQ": False}, "1.37", {"SchedulerPopFromBackoffQ": False}),
    ],
)
def test_gates_are_set_where_they_can_be_and_told_where_they_have_no_effect(
    gates: dict[str, bool], told: str, without_effect: dict[str, bool]
) -> None:
    found = emulated(gates)

    assert str(found.features) == told
    assert found.without_effect == without_effect
