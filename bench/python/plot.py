#!/usr/bin/env python3
"""Draws what bench/python/backends.py has measured: plot.py FILE.jsonl FILE.svg.

A group of bars for each call or step, as long as the medians beside gloo's.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

COLOURS = {"peal": "#d55e00", "gloo": "#009e73", "lockstep": "#cccccc",
           "reducer": "#aaaaaa", "alone": "#777777", "fake": "#777777"}
NAMES = {"fake": "torch's dispatch alone (fake)", "alone": "processes that do not talk (alone)",
         "reducer": "torch's reducer, sending nothing",
         "lockstep": "the same, waiting for each other"}
LEFT, WIDTH, BAR, GAP, TOP = 290, 420, 16, 14, 30


def text_of(us: float) -> str:
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def plot(lines: list[dict[str, object]]) -> str:
    samples: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        of = samples.setdefault(str(line["what"]), {})
        of.setdefault(str(line["backend"]), []).append(float(str(line["us"])))
    parts, y = [], TOP
    for what, of in samples.items():
        medians = {backend: statistics.median(times) for backend, times in of.items()}
        parts.append(f'<text x="12" y="{y + 12}" class="title">{what}</text>')
        for backend, us in medians.items():
            length = WIDTH * us / medians["gloo"]
            parts += [
                f'<text x="{LEFT - 8}" y="{y + BAR + 12}" text-anchor="end">'
                f'{NAMES.get(backend, backend)}</text>',
                f'<rect x="{LEFT}" y="{y + BAR}" width="{max(length, 1):.1f}" height="{BAR - 2}" '
                f'fill="{COLOURS[backend]}"/>',
                f'<text x="{LEFT + length + 6:.1f}" y="{y + BAR + 12}" class="axis">'
                f'{text_of(us)}</text>']
            y += BAR
        y += BAR + GAP
    width = LEFT + WIDTH + 90
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
            f'height="{y}">\n<style>text{{font:12px sans-serif;fill:#333}}'
            '.title{font-weight:bold;font-size:13px}.axis{fill:#666;font-size:11px}</style>\n'
            f'<rect width="{width}" height="{y}" fill="white"/>\n'
            '<text x="12" y="18">Bars: times beside gloo\'s, medians</text>\n'
            + "\n".join(parts) + "\n</svg>\n")


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    Path(sys.argv[2]).write_text(plot(lines))


if __name__ == "__main__":
    main()
