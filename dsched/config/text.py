"""JSON or YAML text to a `tree`, with the choice between the two made as kube-scheduler makes it.

Text whose first character other than white space is ``{`` is JSON and nothing else; all other text is YAML, of which
the first document counts.

Source: apimachinery pkg/util/yaml/decoder.go (``IsJSONBuffer``) and pkg/runtime/serializer (``recognizer``, ``json``).
"""

import json
import re

from dsched.config import tree, yaml_text

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "nested too deeply"


class TextError(ValueError):
    """The text is broken, or says something that cannot be said in JSON."""


def parse(text: str | bytes) -> tree.Tree:
    """Read one document.

    Raises:
        TextError: broken text, a key given twice in YAML, a YAML value that JSON has no word for.
    """
    data = text if isinstance(text, bytes) else _replace_surrogates(text).encode()
    readable = data.decode("utf-8", errors="replace")
    try:
        if readable.lstrip(_SPACE).startswith("{"):
            return _parse_json(readable)
        return yaml_text.parse(data)
    except RecursionError as error:
        raise TextError(_TOO_DEEP) from error
    except yaml_text.YamlError as error:
        raise TextError(str(error)) from error


def _parse_json(text: str) -> tree.Tree:
    try:
        parsed: tree.Tree = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=tree.checked_number,
            parse_float=tree.checked_number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise TextError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except tree.BadNumber as error:
        raise TextError(str(error)) from error
    return parsed


def _object(pairs: list[tuple[str, tree.Tree]]) -> tree.Object:
    return tree.Object([(_replace_surrogates(key), value) for key, value in pairs])


def _refuse_constant(name: str) -> tree.Tree:
    raise TextError(f"{name} is no JSON value")


def _replace_surrogates(text: str) -> str:
    """Half a surrogate pair becomes U+FFFD, as Go reads it."""
    return _SURROGATE.sub("\ufffd", text)
