"""Scenarios with more feature gates on."""

import pytest

from tests.faults.scenario import all_scenarios, with_gates


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (3, ("--feature-gates", "DschedDevicePreemption=true,DschedDeviceBestFit=true")),
        (26, ("--feature-gates", "GenericWorkload=true,DschedDevicePreemption=true,DschedDeviceBestFit=true")),
    ],
)
def test_gates_are_turned_on_besides_a_scenarios_own(number: int, options: tuple[str, str]) -> None:
    scenario = all_scenarios()[number]
    gated = with_gates(scenario, ["DschedDevicePreemption", "DschedDeviceBestFit"])
    assert gated.options[-2:] == options
    assert (gated.number, gated.inject) == (scenario.number, scenario.inject)
