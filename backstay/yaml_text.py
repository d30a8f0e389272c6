"""Read YAML that people write; a key that stands there twice is refused, since one of its values would not count."""

from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"


def read_yaml(text: str, kind: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """Return the value; raises yaml.YAMLError, with line and column, also for a key that is there twice.

    `kind` says what is read as something else than text.
    """
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_twice(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_twice(root: yaml.Node) -> None:
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        below: list[yaml.Node] = []
        match node:
            case yaml.MappingNode():
                keys: set[tuple[str, str]] = set()
                for key, item in node.value:
                    below += (key, item)
                    if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                        continue
                    if (key.tag, key.value) in keys:
                        raise yaml.MarkedYAMLError(
                            None, None, f"{key.value}: duplicate key; keep one of them", key.start_mark
                        )
                    keys.add((key.tag, key.value))
            case yaml.SequenceNode():
                below = node.value
            case _:
                pass
        # What is named again by an alias is the same node.
        fresh = [item for item in below if id(item) not in seen]
        seen |= {id(item) for item in fresh}
        waiting += fresh
