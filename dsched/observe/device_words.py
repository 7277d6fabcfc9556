"""Requests for devices in words. Apart from `devices`, which loads what allocates them: tables of objects need no more.
No I/O."""

from dsched.model.resource_claims import ALL, DeviceRequest, DeviceRequirements

_LONGEST = 80
"""Characters of an expression or a text."""


def asked(request: DeviceRequest) -> str:
    """A request in words: ``r: 2 of gpu where …``."""
    if request.exactly is not None:
        admin = ", for an admin" if request.exactly.admin_access else ""
        return f"{request.name}: {_wanted(request.exactly)}{admin}"
    return f"{request.name}: " + ", or ".join(_wanted(each) for each in request.first_available)


def _wanted(wanted: DeviceRequirements) -> str:
    many = "all of" if wanted.allocation_mode == ALL else f"{wanted.count} of"
    where = [short(each.cel.expression) for each in wanted.selectors if each.cel is not None]
    amounts = {} if wanted.capacity is None else wanted.capacity.requests
    of_it = "".join(f", {name} {amount}" for name, amount in sorted(amounts.items()))
    return f"{many} {wanted.device_class_name}{' where ' + ' and '.join(where) if where else ''}{of_it}"


def short(text: str) -> str:
    """On one line, not too long a one."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
