"""HTML from templates: each lies beside the code that fills it, as `NAME.html`."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

__all__ = ["Markup", "fill"]


def fill(template: Path, **values: Any) -> str:
    """Fill a template; what isn't `Markup` is escaped, so that no name can break a page.

    Args:
        template: the file.
        values: by the names that it uses.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)
