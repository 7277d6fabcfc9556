"""How this process counts what pods take up. Apart from what builds frameworks: who only counts needs none."""

from dsched.arithmetic import requests
from dsched.arithmetic.requests import ResizeRules
from dsched.config.feature_gates import Features
from dsched.framework import pod_info


def emulate(features: Features) -> bool:
    """Decide as this version from now on, where that is one for the whole process: in what pods request. Says whether
    that is another way to count than before.

    Every process calls it before it counts a pod; those that build frameworks do so by that.
    """
    resized = ResizeRules(features.since(37), features.enabled("InPlacePodLevelResourcesVerticalScaling"))
    changed = requests.follow(resized)
    if changed:
        pod_info.forget_demands()
    return changed
