"""The functions of authorizers. A selector of devices has no authorizer, so that none of these ever does anything; but
expressions that call them compile, and fail when they are evaluated.

apiserver: ``pkg/cel/library/authz.go``.
"""

from dsched.cel.library.declarations import overload
from dsched.cel.values import NO_OVERLOAD, Failure


def _never(*values: object) -> Failure:
    return NO_OVERLOAD


OVERLOADS = [
    overload(signature, name, _never)
    for signature, name in (
        ("Authorizer::path(string) -> PathCheck", "authorizer_path"),
        ("Authorizer::group(string) -> GroupCheck", "authorizer_group"),
        ("Authorizer::serviceAccount(string, string) -> Authorizer", "authorizer_serviceaccount"),
        ("GroupCheck::resource(string) -> ResourceCheck", "groupcheck_resource"),
        ("ResourceCheck::subresource(string) -> ResourceCheck", "resourcecheck_subresource"),
        ("ResourceCheck::namespace(string) -> ResourceCheck", "resourcecheck_namespace"),
        ("ResourceCheck::name(string) -> ResourceCheck", "resourcecheck_name"),
        ("ResourceCheck::fieldSelector(string) -> ResourceCheck", "authorizer_fieldselector"),
        ("ResourceCheck::labelSelector(string) -> ResourceCheck", "authorizer_labelselector"),
        ("PathCheck::check(string) -> Decision", "pathcheck_check"),
        ("ResourceCheck::check(string) -> Decision", "resourcecheck_check"),
        ("Decision::errored() -> bool", "decision_errored"),
        ("Decision::error() -> string", "decision_error"),
        ("Decision::allowed() -> bool", "decision_allowed"),
        ("Decision::reason() -> string", "decision_reason"),
    )
]
