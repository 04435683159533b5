#!/usr/bin/env python3
"""Draws measurements as one SVG page: plot.py FILE FILE.svg.

For results of `peal bench --json`, it draws time and bus bandwidth over the bytes, for each operation, type
and number of ranks. Each backend is a line, with the range of its rounds as a band. For results of
bench/python/backends.py, it draws bars of the medians for each call or step, relative to gloo. For a report
of the gpt example (lines with a step and its loss), it draws the loss over the steps.
"""

from __future__ import annotations

import html
import json
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterator

Line = dict[str, Any]

# (backend, variant): colour, width, dashes. The colours are safe for colour-blind readers (Okabe and Ito 2008).
# The machine's limit is grey.
STROKES = {
    ("peal", "registered"): ("#d55e00", 2.5, ""), ("peal", "foreign"): ("#e69f00", 2.5, ""),
    ("openmpi", "default"): ("#0072b2", 1.5, ""), ("mpich", "default"): ("#56b4e9", 1.5, ""),
    ("gloo", "default"): ("#009e73", 1.5, ""), ("probe", "plain"): ("#777777", 1.5, "6 3"),
    ("probe", "streaming"): ("#777777", 1.5, "2 3"), ("stream", "two-threads"): ("#aaaaaa", 1.5, "6 3"),
    ("stream", "two-way"): ("#777777", 1.5, "6 3"), ("stream", "round-trip"): ("#777777", 1.5, "2 3"),
}
OTHER = ("#cc79a7", 1.5, "")
PANEL, HEIGHT, LEFT, GAP, TOP, ROW = 460, 300, 62, 84, 56, 392

STYLE = ("<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:13px}"
         ".axis{fill:#666;font-size:11px}</style>")


def page(width: float, height: float, elements: list[str]) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}">\n{STYLE}\n<rect width="{width:g}" height="{height:g}" fill="white"/>\n'
            + "\n".join(elements) + "\n</svg>\n")


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">'
            f'{html.escape(words)}</text>')


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1, dashes: str = "") -> str:
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width:g}" stroke-dasharray="{dashes}"/>')


# ---- peal bench


def time_label(us: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if us >= size:
            return f"{us / size:.0f} {unit}"
    return f"{us * 1000:.0f} ns"


def bytes_label(size: float) -> str:
    for unit, power in (("G", 30), ("M", 20), ("K", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.0f}{unit}"
    return f"{size:.0f}"


def log_ticks(low: float, high: float, base: float, most: int) -> Iterator[float]:
    """Powers of `base`: every n-th power, so that the number is at most `most`."""
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return (base ** k for k in range(first, last + 1, step))


def linear_ticks(high: float, most: int) -> Iterator[float]:
    """Round numbers from 0: 1, 2 or 5 times a power of ten apart."""
    power = 10 ** math.floor(math.log10(high / most))
    step = next(power * k for k in (1, 2, 5, 10) if high / (power * k) <= most)
    return (k * step for k in range(int(high / step) + 1))


def panel(lines: dict[tuple[str, str], list[Line]], left: float, top: float, title: str, logarithmic: bool,
          value: Callable[[Line, float], float], label: Callable[[float], str]) -> Iterator[str]:
    every = [result for results in lines.values() for result in results]
    sizes = [result["bytes"] for result in every]
    values = [value(result, result[key]) for result in every for key in ("min_us", "median_us", "max_us")]
    low_x, high_x = min(sizes), max(sizes)
    if low_x == high_x:  # centers a single size
        low_x, high_x = low_x / 2, high_x * 2
    if logarithmic:
        low_y, high_y = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values) * 1.0001))
    else:
        low_y, high_y = 0.0, max(values) * 1.05
    bottom, right = top + HEIGHT, left + PANEL

    def x(size: float) -> float:
        return left + PANEL * math.log(size / low_x) / math.log(high_x / low_x)

    def y(of: float) -> float:
        if logarithmic:
            return bottom - HEIGHT * math.log(of / low_y) / math.log(high_y / low_y)
        return bottom - HEIGHT * of / high_y

    for tick in log_ticks(low_y, high_y, 10, 9) if logarithmic else linear_ticks(high_y, 6):
        yield line(left, y(tick), right, y(tick), "#e4e4e4")
        yield text(left - 6, y(tick) + 4, label(tick), "end", "axis")
    for tick in log_ticks(low_x, high_x, 4, 10):
        yield line(x(tick), top, x(tick), bottom, "#f0f0f0")
        yield text(x(tick), bottom + 16, bytes_label(tick), "middle", "axis")
    yield line(left, bottom, right, bottom, "#666666")
    yield line(left, top, left, bottom, "#666666")
    yield text(left, top - 6, title, "start", "axis")
    yield text(right, bottom + 30, "bytes", "end", "axis")
    for name, results in lines.items():
        colour, width, dashes = STROKES.get(name, OTHER)

        def points(key: str) -> list[str]:
            return [f"{x(r['bytes']):.1f},{y(value(r, r[key])):.1f}" for r in results]

        band = " ".join(points("max_us") + points("min_us")[::-1])
        yield f'<polygon points="{band}" fill="{colour}" fill-opacity="0.15"/>'
        yield (f'<polyline points="{" ".join(points("median_us"))}" fill="none" stroke="{colour}" '
               f'stroke-width="{width:g}" stroke-dasharray="{dashes}"/>')
        for point in points("median_us"):
            cx, cy = point.split(",")
            yield f'<circle cx="{cx}" cy="{cy}" r="{width:g}" fill="{colour}"/>'


def curves(results: list[Line]) -> str:
    rows: dict[tuple[str, str, int], dict[tuple[str, str], list[Line]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda r: r["bytes"]):
        if result["bytes"] > 0:
            rows[result["op"], result["dtype"], result["np"]][result["backend"], result["variant"]].append(result)
    elements, x = [], float(LEFT)
    names = {name: None for lines in rows.values() for name in lines}
    order = list(STROKES)
    for name in sorted(names, key=lambda n: order.index(n) if n in STROKES else len(order)):
        words = name[0] if name[1] == "default" else f"{name[0]}, {name[1]}"
        colour, width, dashes = STROKES.get(name, OTHER)
        elements += [line(x, 24, x + 26, 24, colour, width, dashes), text(x + 32, 28, words)]
        x += 56 + 7 * len(words)
    top = float(TOP)
    for (op, dtype, ranks), lines in rows.items():
        elements.append(text(LEFT, top + 6, f"{op} of {dtype} on {ranks} ranks", style="title"))
        elements += panel(lines, LEFT, top + 34, "time of one operation", True, lambda r, us: us, time_label)
        elements += panel(lines, LEFT + PANEL + GAP, top + 34, "bus bandwidth, 10^9 bytes per second", False,
                          lambda r, us: r["busbw_gbps"] * r["median_us"] / us, lambda v: f"{v:g}")
        top += ROW
    return page(LEFT + 2 * PANEL + GAP + 30, top, elements)


# ---- bench/python/backends.py

COLOURS = {"peal": "#d55e00", "peal ddp": "#aa3300", "gloo": "#009e73", "lockstep": "#cccccc",
           "reducer": "#aaaaaa", "alone": "#777777", "fake": "#777777"}
NAMES = {"fake": "torch's dispatch only (fake)", "alone": "processes that do not communicate (alone)",
         "peal ddp": "peal.DistributedDataParallel", "reducer": "torch's reducer, sending nothing",
         "lockstep": "the same, waiting for each other"}


def bars(lines: list[Line]) -> str:
    left, width, bar = 290, 420, 16
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in lines:
        samples[sample["what"]][sample["backend"]].append(float(sample["us"]))
    elements, y = [text(12, 18, "Bars: median times, relative to gloo")], 30
    for what, of in samples.items():
        medians = {backend: statistics.median(times) for backend, times in of.items()}
        elements.append(text(12, y + 12, what, style="title"))
        for backend, us in medians.items():
            y += bar
            length = max(width * us / medians["gloo"], 1)
            time = f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"
            elements += [text(left - 8, y + 12, NAMES.get(backend, backend), "end"),
                         f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" '
                         f'fill="{COLOURS[backend]}"/>',
                         text(left + length + 6, y + 12, time, style="axis")]
        y += bar + 14
    return page(left + width + 90, y, elements)


# ---- the gpt example


def losses(report: str) -> str:
    points = [(int(step), float(loss)) for step, loss in map(str.split, report.splitlines())]
    last = points[-1][0]
    values = [loss for _, loss in points]
    low, high = math.floor(min(values)), math.floor(max(values)) + 1
    right, bottom = LEFT + PANEL, TOP + HEIGHT

    def x(step: float) -> float:
        return LEFT + PANEL * step / last

    def y(loss: float) -> float:
        return bottom - HEIGHT * (loss - low) / (high - low)

    elements = [text(LEFT, TOP - 18, "mean loss over all ranks", style="title"),
                text(right, bottom + 30, "step", "end", "axis")]
    for tick in linear_ticks(high, 10):
        if tick >= low:
            elements += [line(LEFT, y(tick), right, y(tick), "#e4e4e4"),
                         text(LEFT - 6, y(tick) + 4, f"{tick:g}", "end", "axis")]
    for tick in linear_ticks(last, 8):
        elements += [line(x(tick), TOP, x(tick), bottom, "#f0f0f0"),
                     text(x(tick), bottom + 16, f"{tick:g}", "middle", "axis")]
    elements += [line(LEFT, bottom, right, bottom, "#666666"), line(LEFT, TOP, LEFT, bottom, "#666666")]
    colour, width, _ = STROKES["peal", "registered"]
    row = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
    elements.append(f'<polyline points="{row}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')
    return page(right + 30, bottom + 42, elements)


def draw(results: str) -> str:
    if results and not results.startswith("{"):
        return losses(results)
    lines = [json.loads(each) for each in results.splitlines()]
    return bars(lines) if lines and "what" in lines[0] else curves(lines)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[2]).write_text(draw(Path(sys.argv[1]).read_text()))


if __name__ == "__main__":
    main()
