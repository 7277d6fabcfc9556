"""IP addresses and networks in expressions.

apiserver: ``pkg/cel/library/ip.go``, ``pkg/cel/library/cidr.go``; Go: ``net/netip``.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from dsched.cel.library.declarations import overload
from dsched.cel.values import Cidr, Failure

Address = IPv4Address | IPv6Address
_LINK_LOCAL_MULTICAST = (0xE00000, 0xFF02)


def parse_ip(text: str) -> Any:
    """An address without zone; a `Failure` for text that is none."""
    try:
        found = ip_address(text)
    except ValueError:
        return Failure(f"IP Address {text!r} parse error during conversion from string")
    if isinstance(found, IPv6Address):
        if found.scope_id is not None or "%" in text:
            return Failure(f"IP address {text!r} with zone value is not allowed")
        if found.ipv4_mapped is not None:
            return Failure(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return found


def parse_cidr(text: str) -> Any:
    """A network, with the bits of its host part kept; a `Failure` for text that is none."""
    address, slash, bits = text.rpartition("/")
    found = parse_ip(address) if slash else None
    plain = bits.isascii() and bits.isdigit() and len(bits) <= 3 and (bits == "0" or bits[0] != "0")
    if not isinstance(found, Address) or not plain or int(bits) > found.max_prefixlen:
        return Failure(f"network address parse error during conversion from string: {text!r}")
    return Cidr(found, int(bits))


def _text(address: Address) -> str:
    return str(address)


def _is_canonical(text: str) -> Any:
    found = parse_ip(text)
    return found if isinstance(found, Failure) else str(found) == text


def _network(address: Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


def _contains_ip(cidr: Cidr, address: Address) -> bool:
    same = type(address) is type(cidr.address)
    return same and _network(cidr.address, cidr.prefix) == _network(address, cidr.prefix)


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.prefix <= other.prefix and _contains_ip(cidr, other.address)


def _contains_ip_text(cidr: Cidr, text: str) -> Any:
    found = parse_ip(text)
    return found if isinstance(found, Failure) else _contains_ip(cidr, found)


def _contains_cidr_text(cidr: Cidr, text: str) -> Any:
    found = parse_cidr(text)
    return found if isinstance(found, Failure) else _contains_cidr(cidr, found)


def _masked(cidr: Cidr) -> Cidr:
    host = cidr.address.max_prefixlen - cidr.prefix
    kind = type(cidr.address)
    return Cidr(kind(int(cidr.address) >> host << host), cidr.prefix)


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == _LINK_LOCAL_MULTICAST[0]
    return int(address) >> 112 & 0xFF0F == _LINK_LOCAL_MULTICAST[1]


def _is_link_local_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 16 == 0xA9FE
    return int(address) >> 118 == 0xFE80 >> 6


def _is_global_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF:
        return False
    return not (
        address.is_unspecified or address.is_loopback or address.is_multicast or _is_link_local_unicast(address)
    )


OVERLOADS = [
    overload("ip(string) -> IP", "string_to_ip", parse_ip),
    overload("CIDR::ip() -> IP", "cidr_ip", lambda cidr: cidr.address),
    overload("IP::family() -> int", "ip_family", lambda address: address.version),
    overload("ip.isCanonical(string) -> bool", "ip_is_canonical", _is_canonical),
    overload("IP::isUnspecified() -> bool", "ip_is_unspecified", lambda address: address.is_unspecified),
    overload("IP::isLoopback() -> bool", "ip_is_loopback", lambda address: address.is_loopback),
    overload("IP::isLinkLocalMulticast() -> bool", "ip_is_link_local_multicast", _is_link_local_multicast),
    overload("IP::isLinkLocalUnicast() -> bool", "ip_is_link_local_unicast", _is_link_local_unicast),
    overload("IP::isGlobalUnicast() -> bool", "ip_is_global_unicast", _is_global_unicast),
    overload("isIP(string) -> bool", "is_ip", lambda text: not isinstance(parse_ip(text), Failure)),
    overload("string(IP) -> string", "ip_to_string", _text),
    overload("cidr(string) -> CIDR", "string_to_cidr", parse_cidr),
    overload("CIDR::containsIP(string) -> bool", "cidr_contains_ip_string", _contains_ip_text),
    overload("CIDR::containsIP(IP) -> bool", "cidr_contains_ip_ip", _contains_ip),
    overload("CIDR::containsCIDR(string) -> bool", "cidr_contains_cidr_string", _contains_cidr_text),
    overload("CIDR::containsCIDR(CIDR) -> bool", "cidr_contains_cidr", _contains_cidr),
    overload("CIDR::prefixLength() -> int", "cidr_prefix_length", lambda cidr: cidr.prefix),
    overload("CIDR::masked() -> CIDR", "cidr_masked", _masked),
    overload("isCIDR(string) -> bool", "is_cidr", lambda text: type(parse_cidr(text)) is Cidr),
    overload("string(CIDR) -> string", "cidr_to_string", lambda cidr: f"{cidr.address}/{cidr.prefix}"),
]
