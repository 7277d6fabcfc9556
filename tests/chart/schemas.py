"""What the objects of a version of Kubernetes may look like: strictly, with no field that it does not know.

From the OpenAPI document of that version, which leaves unknown fields open, and of kinds that others define from their
definitions (CustomResourceDefinitions).
"""

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import yaml

Json = dict[str, Any]

EITHER = {"type": ["integer", "string"]}
AS_THEY_ARE_WRITTEN = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": EITHER,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["number", "string"]},
}
"""Types that the document calls strings, which is but one of their forms."""


class UnknownKind(Exception):
    """No schema tells of it."""


class Schemas:
    """Of one version of Kubernetes.

    Args:
        openapi: its document, ``api/openapi-spec/swagger.json``.
        definitions: files with CustomResourceDefinitions.
    """

    def __init__(self, openapi: Path, definitions: Sequence[Path] = ()) -> None:
        types: Json = json.loads(openapi.read_text())["definitions"] | AS_THEY_ARE_WRITTEN
        self._types = {name: closed(each) for name, each in types.items()}
        self._kinds: dict[tuple[str, str], Json] = {}
        for name, each in types.items():
            for kind in each.get("x-kubernetes-group-version-kind", ()):
                version = "/".join(filter(None, (kind["group"], kind["version"])))
                self._kinds[version, kind["kind"]] = {"$ref": f"#/definitions/{name}"}
        for path in definitions:
            spec = yaml.safe_load(path.read_text())["spec"]
            for version in spec["versions"]:
                named = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                self._kinds[named] = closed(version["schema"]["openAPIV3Schema"])

    def wrong(self, item: Json) -> Iterator[str]:
        """What is wrong with an object.

        Raises:
            UnknownKind: this version has no such kind.
        """
        for error in self._validator(item["apiVersion"], item["kind"]).iter_errors(item):
            yield f"{item['kind']} {item['metadata']['name']}: {error.json_path}: {error.message}"

    @functools.cache  # noqa: B019 - lives as long as the tests do
    def _validator(self, version: str, kind: str) -> jsonschema.Draft4Validator:
        schema = self._kinds.get((version, kind))
        if schema is None:
            raise UnknownKind(f"{version} {kind}")
        return jsonschema.Draft4Validator({"definitions": self._types, "allOf": [schema]})


def closed(schema: Any) -> Any:
    """The same without fields that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return EITHER
    found = {key: closed(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found
