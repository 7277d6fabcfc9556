"""How an attempt to allocate ends when it is neither an allocation nor none."""

from dsched.errors import DschedError


class AllocationError(DschedError):
    """Something is wrong with a claim, a class or a slice: the attempt ends, on every node. In upstream's words."""


class AllocationTimeout(AllocationError):
    """The search took longer than it may (``filterTimeout``)."""


class InvalidPools(DschedError):
    """There are no devices on this node, where some pools are invalid; other nodes may have some.

    Source: structured/allocator.go ``ErrFailedAllocationOnNode``.
    """

    def __init__(self) -> None:
        super().__init__("invalid resource pools were encountered")
