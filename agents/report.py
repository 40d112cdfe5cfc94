"""The report of a run: one HTML page that needs nothing else, made from `results.json`."""

from html import escape
from typing import Any, Final

from agents import figures

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2430; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid #d8dce3; }
p { margin: .4rem 0; } .lead { color: #4a5160; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #eceef2; }
th { font-weight: 600; color: #4a5160; border-bottom: 1px solid #9aa2b1; }
th:first-child, td:first-child, .word { text-align: left; }
.interval { color: #6a7282; white-space: nowrap; }
.better { color: #0b6e4f; } .worse { color: #a5341f; }
.warning { background: #fdecea; border-left: 4px solid #a5341f; padding: .5rem .8rem; }
svg { max-width: 100%; height: auto; display: block; }
.pictures { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem 2rem; }
.scroll { overflow-x: auto; }
pre { background: #f5f6f8; padding: .7rem .9rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 45rem) { .pictures { grid-template-columns: 1fr; } }
@page { margin: 15mm; }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 9pt; }
  h2 { break-after: avoid; margin-top: 1.4rem; }
  th, td { padding: .15rem .45rem; } .scroll { overflow: visible; }
  tr, svg, pre, .warning { break-inside: avoid; } svg { max-width: 85%; }
  .pictures svg { max-width: 100%; } }
"""


def page(results: dict[str, Any]) -> str:
    """The whole page.

    Args:
        results: what `results.json` holds.
    """
    parts = [
        _heading(results),
        _failures(results),
        "<h2>Who is better</h2>",
        _standings(results),
        figures.ratings(results),
        "<h2>Each against each</h2>",
        _pairings_words(results),
        figures.heat_map(results),
        _pairings(results),
        _mixed(results),
        _second_views(results),
        "<h2>Seats and lengths</h2>",
        _pictures(figures.seats(results), figures.lengths(results)),
        _courses(results),
        "<h2>Deals needed</h2>",
        _plan(results),
        "<h2>How to get the same numbers</h2>",
        f"<pre>{escape(results['command'])}</pre>",
        _made_with(results),
    ]
    title = "3UP 3DOWN round robin"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(part for part in parts if part) + "\n</html>\n"
    )


def _heading(results: dict[str, Any]) -> str:
    settings = results["settings"]
    percent = f"{100 * results['confidence']:g}%"
    text = (
        f"{results['num_players']} players, variant {settings['variant']}, "
        f"{results['deals_played']:,} {settings['deal_set']} deals, {results['games']:,} games. "
        f"Every line-up plays the same deals, each under every rotation of the seats; the "
        f"intervals are {percent}, resampling deals. The fair share is "
        f"{results['fair_share']:.3f}."
    )
    stopping = results["stopping"]
    if stopping:
        text += f" Sequential run: {stopping['rule']} (looks: {_list(stopping['looks'])} deals)."
    return f'<h1>3UP 3DOWN round robin</h1>\n<p class="lead">{escape(text)}</p>'


def _failures(results: dict[str, Any]) -> str:
    lines = [
        f"<p class=warning>{escape(row['agent'])} left the run: {escape(row['reason'])} "
        f"({escape(' / '.join(row['line_up']))}, deal {row['deal']}, rotation {row['rotation']}, "
        f"step {row['step']})</p>"
        for row in results["failures"]
    ]
    return "\n".join(lines)


def _standings(results: dict[str, Any]) -> str:
    shares = {row["agent"]: row for row in results["standings"]}
    rows = []
    for rating in results["ratings"]:
        row = shares[rating["agent"]]
        rows.append(
            [
                escape(row["agent"]),
                f"{rating['rating']:+.2f}",
                _interval(rating["low"], rating["high"], "+.2f")
                if rating["low"] < rating["high"]
                else "the zero",
                f"{row['win_share']:.3f}",
                _interval(row["low"], row["high"]),
                f"{row['mean_place']:.2f}",
                f"{row['cut_off_share']:.1%}",
                f"{row['games']:,}",
            ]
        )
    head = ["agent", "rating", "", "win share", "", "mean place", "cut off", "games"]
    note = (
        "<p>Ratings are Plackett-Luce: at one table an agent wins in proportion to "
        "e<sup>rating</sup>. Shares, places and cut-offs are means over tables of one other "
        "agent each.</p>"
    )
    return _table(head, rows) + note


def _pairings_words(results: dict[str, Any]) -> str:
    level = 1 - results["confidence"]
    return (
        "<p>The win share of the agent on the left at a table of the agent below. Better and "
        f"worse: the two differ on the same deals, Holm-corrected at {level:.3g}; pairs that "
        "are not separable stand in brackets.</p>"
    )


def _pairings(results: dict[str, Any]) -> str:
    order = {row["agent"]: i for i, row in enumerate(results["ratings"])}
    rows = [
        [
            escape(row["agent"]),
            escape(row["against"]),
            f"{row['win_share']:.3f}",
            _interval(row["low"], row["high"]),
            f'<span class="{row["verdict"].split()[0]}">{row["verdict"]}</span>',
            f"{row['p_holm']:.2g}",
            f"{row['mean_place']:.2f}",
            f"{row['cut_off_share']:.1%}",
        ]
        for row in sorted(
            results["pairings"], key=lambda row: (order[row["agent"]], order[row["against"]])
        )
    ]
    head = ["agent", "against", "win share", "", "is", "p (Holm)", "mean place", "cut off"]
    return _table(head, rows, words=(0, 1, 4))


def _second_views(results: dict[str, Any]) -> str:
    if "second_views" not in results:
        return ""
    rows = [
        [
            escape(row["agent"]),
            *(
                cell
                for name in ("alpha_rank", "nash_value")
                for cell in (
                    f"{row[name]:.3f}",
                    _interval(row[f"{name}_low"], row[f"{name}_high"]),
                )
            ),
        ]
        for row in results["second_views"]
    ]
    head = ["agent", "alpha-rank", "", "Nash value", ""]
    note = (
        "<p>Alpha-rank: an agent's mass in the evolutionary dynamics. Nash value: its advantage "
        "over the Nash mixture of all agents, 0 for those in it.</p>"
    )
    return "<h2>Second views</h2>" + _table(head, rows) + note


def _mixed(results: dict[str, Any]) -> str:
    if not results["mixed"]:
        return ""
    rows = [
        [
            escape(row["agent"]),
            f"{row['win_share']:.3f}",
            _interval(row["low"], row["high"]),
            f"{row['mean_place']:.2f}",
            f"{row['cut_off_share']:.1%}",
            str(row["tables"]),
        ]
        for row in results["mixed"]
    ]
    head = ["agent", "win share a seat", "", "mean place", "cut off", "tables"]
    return "<h2>Mixed tables</h2>" + _table(head, rows)


def _courses(results: dict[str, Any]) -> str:
    length = results["length"]
    return (
        f"<p>A game takes {length['mean']:.1f} "
        f"{_interval(length['low'], length['high'], '.1f')} actions. Distinct deals: "
        f"{results['distinct_deals']:,} of {results['deals_played']:,}. Games that follow the "
        f"same course as another of the same deal: {results['repeated_games']:,} of "
        f"{results['games']:,}.</p>"
    )


def _plan(results: dict[str, Any]) -> str:
    plan = results["plan"]
    return (
        f"<p>With these deals as the pilot, intervals of &plusmn;{plan['half_width']:g} for "
        f"every pairing need about {plan['deals']:,} deals. {_rotation_words(plan['pairings'])}</p>"
    )


def _rotation_words(rows: list[dict[str, Any]]) -> str:
    ratios = [row["variance_ratio"] for row in rows if row["variance_ratio"]]
    if not ratios:
        return ""
    low, high = min(ratios), max(ratios)
    return f"Rotating the seats on each deal divides the variance by {low:.2f} to {high:.2f}."


def _made_with(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    times = {row["agent"]: row for row in results["timing"]}
    rows = []
    for row in results["agents"]:
        time = times[row["agent"]]
        speed = f"{1e6 * time['seconds'] / max(time['decisions'], 1):,.1f}"
        code = f"<code>{row['hash']}</code>"
        rows.append([escape(row["agent"]), escape(row["about"]), speed, code])
    table = _table(["agent", "plays", "µs a decision", "code and policy"], rows, words=(0, 1, 3))
    return f"{table}<p class=lead>Engine {results['engine']}; {escape(versions)}.</p>"


def _pictures(*pictures: str) -> str:
    return '<div class="pictures">' + "".join(f"<div>{one}</div>" for one in pictures) + "</div>"


def _table(head: list[str], rows: list[list[str]], words: tuple[int, ...] = (0,)) -> str:
    def line(cells: list[str], tag: str) -> str:
        marked = (
            f'<{tag} class="word">{cell}</{tag}>' if i in words else f"<{tag}>{cell}</{tag}>"
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(marked)}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    table = f"<table><thead>{line(head, 'th')}</thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _interval(low: float, high: float, form: str = ".3f") -> str:
    return f'<span class="interval">[{low:{form}}, {high:{form}}]</span>'


def _list(numbers: list[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
