"""The language itself: what compiles, what comes out, what fails. Each was asked of cel-go 0.29 as Kubernetes sets
it up."""

import pytest

from dsched.cel import CompileError, EvaluationError, compile


def value(expression: str) -> object:
    return compile(expression).evaluate({}).value


@pytest.mark.parametrize(
    "expression",
    [
        "--1 == 1",
        "-9223372036854775808 < 0",
        "0x10 == 16 && 1u == 0x1u && 1e3 == 1000.0 && .5 == 0.5",
        "r'\\n' == '\\\\n' && b'\\xff' == b'\\377' && '\\u00e9' == '\\xe9'",
        "[1, 2, 3,][2] == 3 && {'a': 1,}.a == 1",
        "{'a': {'b': 1}}.?a.?c.orValue(5) == 5",
        "[?optional.none(), 2].size() == 1",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "dyn(1) == 1.0 && 1 < 2.0 && 1u < 2",
        "type(1) == int && type(type(1)) == type",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].sum() == 3",
        "['ccc', 'a'].sortBy(x, x.size()) == ['a', 'ccc']",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "cel.bind(x, 1 / 0, true)",
        "string(1000000.0) == '1e+06' && string(duration('90m')) == '5400s'",
        "'%s is %.1f of %d'.format(['x', 1234.5, 3]) == 'x is 1,234.5 of 3'",
        "timestamp('2023-06-15T12:34:56Z').getHours('America/New_York') == 8",
        "quantity('1Ki').asInteger() == 1024 && !quantity('2000m').isInteger()",
        "semver('1.0.0-beta.2').isLessThan(semver('1.0.0-beta.11'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !isIP('::ffff:1.2.3.4')",
        "url('https://h:80/a%20b?x=1').getEscapedPath() == '/a%20b'",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1])",
    ],
)
def test_is_true(expression: str) -> None:
    assert value(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775808 > 0",
        "18446744073709551616u > 0u",
        "1e400 > 1.0",
        "'\\q' == ''",
        "'a' 'b'",
        "as == 1",
        "1 == 1u",
        "[1, 'a'] == []",
        "'a' in 'abc'",
        "[1].map(x.y, x)",
        "[1].existsOne(x, true)",
        "has(1)",
        "uint(-1) == 1u",
        "'a'.matches('[')",
        "'%d'.format(['x']) == ''",
        "unknown(1)",
    ],
)
def test_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile(expression)
    assert caught.value.kind == "compile"


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775807 + 1 > 0",
        "1u - 2u > 0u",
        "1 % 0 == 0",
        "[1][5] == 1",
        "{'a': 1}.b == 1",
        "optional.none().value() == 1",
        "0.0 / 0.0 < 1.0",
        "[].max() == 1",
        "quantity('x') == quantity('1')",
        "quantity('1') == quantity('1').add(0)",
    ],
)
def test_fails_when_it_runs(expression: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        value(expression)
    assert caught.value.kind == "runtime"


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 300 + "1" + ")" * 300,
        "[" * 5000,
        "1" + " + 1" * 300,
        "-" * 5000 + "x",
        "9" * 90_000,
        "a" * 200_000,
        "true ? " * 300 + "true" + " : true" * 300,
        "{" * 5000,
        "'" + "x" * 99_000,
        "f(" * 5000,
    ],
)
def test_hostile_texts_do_not_compile(expression: str) -> None:
    with pytest.raises(CompileError):
        compile(expression)


def test_nesting_up_to_the_limit_runs() -> None:
    assert value("(" * 240 + "true" + ")" * 240) is True
    assert value("1" + " + 1" * 240 + " == 241") is True
    assert value("true" + " && true" * 5000) is True


def test_a_loop_does_not_copy_its_result_at_each_step() -> None:
    assert value("lists.range(20000).map(x, x).size() == 20000") is True
