"""Reads the protobuf form of a Binding as an API server does: any order of fields, by the numbers of upstream's
generated.proto files."""

from tests.manifests import Json

MAGIC = b"k8s\x00"


def read_binding(raw: bytes) -> Json:
    """A Binding as its JSON form."""
    assert raw.startswith(MAGIC)
    unknown = _fields(raw[len(MAGIC) :])
    kind = _fields(unknown[1])
    binding = _fields(unknown[2])
    metadata, target = _fields(binding[1]), _fields(binding[2])
    return {
        "apiVersion": kind[1].decode(),
        "kind": kind[2].decode(),
        "metadata": {name: metadata[number].decode() for number, name in ((1, "name"), (3, "namespace"), (5, "uid"))},
        "target": {name: target[number].decode() for number, name in ((5, "apiVersion"), (1, "kind"), (3, "name"))},
    }


def _fields(raw: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        assert tag & 7 == 2, "only fields with a length are expected"
        size, at = _varint(raw, at)
        assert at + size <= len(raw)
        found[tag >> 3] = raw[at : at + size]
        at += size
    return found


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[at] & 0x7F) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 0x80:
            return value, at
