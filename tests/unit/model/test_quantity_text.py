"""Quantities written out: the answers are Go's own (k8s.io/apimachinery v0.37.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.model.quantity import nano
from dsched.model.quantity_text import Notation, notation, text, written_out


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("0", "0"),
        ("00", "0"),
        ("40Gi", "40Gi"),
        ("4096Mi", "4Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1023Ki", "1023Ki"),
        ("8Ki", "8Ki"),
        ("0.1Ki", "102400m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("2e3", "2e3"),
        ("2000e0", "2e3"),
        ("1500e-3", "1500e-3"),
        ("1000000", "1M"),
        ("500Ei", "9223372036854775807"),
        ("1234567891.1234567891", "1234567891123456790n"),
        ("-4096Mi", "-4Gi"),
        (2, "2"),
    ],
)
def test_text(written: str | int, canonical: str) -> None:
    assert text(written) == canonical


@pytest.mark.parametrize(
    ("written", "kind"),
    [("1Gi", Notation.BINARY), ("0.0001Ki", Notation.DECIMAL), ("1", Notation.DECIMAL), ("1e3", Notation.EXPONENT)],
)
def test_notation(written: str, kind: Notation) -> None:
    assert notation(written) is kind


@given(st.integers(-(10**28), 10**28), st.sampled_from(list(Notation)))
def test_what_is_written_out_is_read_back(nanos: int, kind: Notation) -> None:
    assert nano(written_out(nanos, kind)) == nanos
