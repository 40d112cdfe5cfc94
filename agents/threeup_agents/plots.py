"""How every chart looks, and how it becomes SVG text."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

INK: Final = "#1f2430"
GREY: Final = "#9aa2b1"
BLUE: Final = "#2b5c8a"
GRID: Final = "#eceef2"
PAPER: Final = "#ffffff"
SEATS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of lines, told apart by colour-blind readers too (Okabe & Ito 2008)."""
_STYLE: Final[dict[Any, Any]] = {
    "text.parse_math": False,  # a $ in an agent's name is a $
    "svg.fonttype": "none",  # text stays text: small, sharp, searchable
    "svg.hashsalt": "threeup",  # the same picture gives the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.prop_cycle": cycler(color=SEATS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
}
_NAMES: Final = {INK: "ink", GREY: "grey", BLUE: "blue", GRID: "grid", PAPER: "paper"}
"""The variable of a page's style sheet that stands for each colour, see `themed`."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in this project's style."""
    with rc_context(_STYLE):
        yield


def use_in_notebook() -> None:
    """Draw in this project's style from here on, as SVG."""
    from matplotlib_inline.backend_inline import set_matplotlib_formats  # comes with notebooks

    set_matplotlib_formats("svg")  # type: ignore[no-untyped-call]  # has no types
    rcParams.update(_STYLE)


def legend_above(axes: Any, columns: int = 3) -> None:
    """Name what is drawn above the axes, off the marks."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False)


def draw_band(
    axes: Any,
    xs: Sequence[float],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    **line: Any,
) -> None:
    """Draw a line through its points and the band of their intervals; `line` is for `plot`."""
    (drawn,) = axes.plot(xs, values, clip_on=False, **line)
    # The band of a single point has no width, so it gets an outline.
    outline = float(len(xs) == 1)
    axes.fill_between(xs, low, high, color=drawn.get_color(), alpha=0.2, linewidth=5 * outline)


def mark_fair(axes: Any, share: float) -> None:
    """Draw the share of the win that equals would have, and name it beside the axes."""
    axes.axhline(share, color=GREY, linewidth=0.8, linestyle=":")
    place = axes.get_yaxis_transform()
    axes.text(1.01, share, "fair\nshare", va="center", size=8, transform=place)


def as_svg(figure: Figure) -> str:
    """The picture as an `<svg>` element, with no date in it."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def themed(svg: str) -> str:
    """The picture with its page's colours, so that it is readable on dark paper too.

    The page's style sheet gives `--ink`, `--grey`, `--blue`, `--grid` and `--paper`.

    >>> themed('<path style="stroke: #1f2430"/>')
    '<path style="stroke: var(--ink)"/>'
    """
    for colour, name in _NAMES.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg
