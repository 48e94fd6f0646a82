"""Documents that people write or other tools print, as YAML or JSON. Pure."""

from __future__ import annotations

from typing import Any

MOST_BYTES = 2 << 20  # reading takes seconds
_DEEPEST = 64
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def parse_yaml(content: bytes) -> Any:
    """The document. Raises ValueError with one line."""
    import yaml

    if len(content) > MOST_BYTES:
        raise ValueError("is over 2 MiB, which is too large")
    loader = _loader()
    try:
        text = content.decode()
        if fault := _danger(yaml.parse(text, Loader=loader)):
            raise ValueError(fault)
        return yaml.load(text, Loader=loader)
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        what = str(getattr(fault, "problem", None) or fault).splitlines()[0][:120]
        raise ValueError(f"not YAML{line}: {what}") from None


def _loader() -> Any:
    """PyYAML's, which refuses what it would otherwise take for something else in silence."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # C if it is there
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if str(key.value) in seen:
                    self._refuse(f"{str(key.value)[:40]!r} occurs twice", key)
                seen.add(str(key.value))
            return super().construct_mapping(node, deep=deep)

        def construct_scalar(self, node: Any) -> Any:
            if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and ":" in node.value:
                self._refuse(f"{node.value[:40]} is a number to the base 60; quote it", node)
            return super().construct_scalar(node)

        def _refuse(self, what: str, node: Any) -> None:
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)

    return Loader


def _danger(events: Any) -> str:
    """What must not be built: aliases can make a small text exhaust the memory, and the C parser
    (libyaml 0.2.5) crashes on deep nesting."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            return f"has an alias (*{event.anchor[:40]}); write out what it stands for"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return f"is nested over {_DEEPEST} levels deep"
    return ""
