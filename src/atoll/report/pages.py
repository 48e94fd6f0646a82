"""HTML pages from the templates of this package: no script, no network, light and dark. Pure."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from atoll.report.svg.elements import inline
from atoll.report.svg.palette import palette_css, picture_css
from atoll.schema.text import printable


def page(template: str, **values: object) -> str:
    """A page; all text is escaped, only Markup is not."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("atoll.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "palette_css": palette_css(),
        "picture_css": picture_css(),
        "inline": inline,
    }
    return environment


def _printable(value: object) -> object:
    """Names come from files; the page's source must not steer a terminal that shows it.

    Line breaks stay: an error may quote several lines of a log.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(printable(line) for line in value.split("\n"))
