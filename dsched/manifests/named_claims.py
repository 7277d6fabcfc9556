"""Checks of the claims for devices that pods and pod groups name in ``spec.resourceClaims``.

Source: kubernetes v1.37 pkg/apis/core/validation/validation.go ``validatePodResourceClaims``;
pkg/apis/scheduling/v1beta1/zz_generated.validations.go ``Validate_PodGroupResourceClaim``.
"""

from collections.abc import Sequence

from dsched.manifests import syntax
from dsched.manifests.resource_checks import Report
from dsched.model.pod import PodResourceClaim


def check(claims: Sequence[PodResourceClaim], report: Report) -> None:
    """Each has a name of its own, and names a claim or a template."""
    seen = set()
    for index, claim in enumerate(claims):
        path = f"spec.resourceClaims[{index}]"
        wrong = syntax.dns_label(claim.name) if claim.name else "is missing"
        if wrong or claim.name in seen:
            report(f"{path}.name", wrong or f'"{claim.name}" is given twice')
        seen.add(claim.name)
        names = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        if sum(name is not None for name in names.values()) != 1:
            report(path, f"exactly one of {', '.join(names)} has to be given")
        for field, name in names.items():
            if name is not None and (wrong := syntax.subdomain(name)):
                report(f"{path}.{field}", wrong)
