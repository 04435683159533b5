"""Writes tables of measurements into a Markdown file: tables.py FILE.

A table is between the comments `<!-- table KIND NAME... -->` and `<!-- end -->`. `peal bench --json` wrote
NAME.jsonl; its folder has the name of the Markdown file without its ending. A cell without a measurement
is empty. Kinds:

times     one operation: median times and floor, a row for each size
faster    how many times as fast as a peer, a row for each operation: `faster PEER NAME...`
in_place  several operations in place: times, and their fraction of the time of all_reduce
types     time per byte relative to f32
hosts     one operation between hosts on foreign memory: times, and times of the bare stream
sealing   one operation with different protection of data, relative to the first NAME
python    results of bench/python/backends.py: `python PART NAME...`
steps     the step of each kind of training relative to "alone", of train_bench or backends.py: `steps PART NAME`
"""
import json
import re
import statistics
import sys
from pathlib import Path

MEMORY = ("registered", "foreign")
# The sizes of these operations are rounded up to whole elements in each rank's block.
WITH_BLOCKS = ("reduce_scatter", "all_gather", "gather", "scatter", "all_to_all")


def load(folder, names):
    return [json.loads(line) | {"run": name} for name in names for line in (folder / f"{name}.jsonl").open()]


def size_text(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def sizes_text(sizes):
    # "4 or 8 B"
    *others, last = dict.fromkeys(size_text(s) for s in sorted(sizes))
    unit = last[last.index(" "):]
    return " or ".join([*(text.removesuffix(unit) for text in others), last])


def median(result):
    if result is None:
        return ""
    us = result["median_us"]
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def floor(result):
    fraction = result and result["floor_fraction"]
    return f"{fraction:.2f}" if fraction else ""


def speedup(result, peer, digits=3):
    factor = result and result["times_faster"].get(peer)
    return f"{factor:.{digits}g}" if factor else ""


def part(result, whole):
    return f"{result['median_us'] / whole['median_us']:.2f}" if result and whole else ""


def table(head, rows):
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def find(results, **fields):
    """The fastest result with these fields, or None."""
    found = [r for r in results if all(r[k] == v for k, v in fields.items())]
    return min(found, key=lambda r: r["median_us"], default=None)


def peers_among(results, *peers):
    return [b for b in peers if find(results, backend=b)]


def times(results):
    peers = peers_among(results, "openmpi", "mpich", "gloo")
    rows = []
    for ranks, size in sorted({(r["np"], r["bytes"]) for r in results}):
        of = [r for r in results if (r["np"], r["bytes"]) == (ranks, size)]
        ours = [find(of, backend="peal", variant=v) for v in MEMORY]
        rows.append([f"{ranks}", size_text(size), *map(median, ours),
                     median(find(of, backend="probe")), floor(ours[0]),
                     *(median(find(of, backend=b)) for b in peers),
                     *(speedup(r, b) for b in peers[:1] for r in ours)])
    head = ["ranks", "bytes", *MEMORY, "probe", "floor", *peers,
            *(f"{v} x {b}" for b in peers[:1] for v in MEMORY)]
    return table(head, rows)


def asked_size(result, sizes):
    """The smallest of `sizes` from which this case may have been rounded up."""
    block = int(re.search(r"\d+", result["dtype"])[0]) // 8 * result["np"]
    slack = block if result["op"] in WITH_BLOCKS else 1
    return min(s for s in sizes if 0 <= result["bytes"] - s < slack)


def faster(results, peer):
    ours = [r for r in results if r["backend"] == "peal"]
    sizes = {r["bytes"] for r in ours}
    columns, cells = {}, {}
    for r in ours:
        size = asked_size(r, sizes)
        columns.setdefault(size, set()).add(r["bytes"])
        cells[r["op"], r["variant"], size] = speedup(r, peer, digits=2)
    rows = [[op, variant] + [cells.get((op, variant, size), "") for size in sorted(columns)]
            for op in dict.fromkeys(r["op"] for r in ours) for variant in MEMORY]
    return table(["", ""] + [sizes_text(columns[size]) for size in sorted(columns)], rows)


def in_place(results):
    ours = [r for r in results if r["backend"] == "peal"]
    rows = []
    for op in dict.fromkeys(r["op"] for r in ours):
        for size in sorted({r["bytes"] for r in ours if r["op"] == op}):
            for variant in MEMORY:
                of = [r for r in ours if (r["bytes"], r["variant"]) == (size, variant)]
                result = find(of, op=op)
                rows.append([op, variant, size_text(size), median(result),
                             part(result, find(of, op="all_reduce"))])
    return table(["", "", "bytes", "time", "of all_reduce's"], rows)


def types(results):
    rows = []
    for size in sorted({r["bytes"] for r in results}):
        of = [r for r in results if r["bytes"] == size and r["backend"] == "peal"]
        f32, *halves = (find(of, dtype=t) for t in ("f32", "bf16", "f16"))
        rows.append([size_text(size), median(f32), *(part(half, f32) for half in halves)])
    return table(["bytes", "f32", "bf16 / f32", "f16 / f32"], rows)


def hosts(results):
    peers = peers_among(results, "gloo", "openmpi")
    rows = []
    for count, ranks, size in sorted({(r["hosts"], r["np"], r["bytes"]) for r in results}):
        of = [r for r in results if (r["hosts"], r["np"], r["bytes"]) == (count, ranks, size)]
        ours = find(of, backend="peal", variant="foreign")
        rows.append([f"{count} x {ranks // count}", size_text(size), median(ours),
                     median(find(of, backend="stream")), floor(ours),
                     *(speedup(ours, b) for b in peers),
                     f"{ours['host_tx_bytes'] / size:.3f}" if ours else ""])
    return table(["hosts x ranks", "bytes", "peal", "stream", "stream / peal",
                  *(f"x {b}" for b in peers), "sent / bytes"], rows)


def sealing(results):
    """Compares separate runs; each run is relative to its bare stream."""
    rows = []
    runs = list(dict.fromkeys(r["run"] for r in results))
    for size in sorted({r["bytes"] for r in results}):
        plain, *sealed = (find(results, run=run, bytes=size, backend="peal") for run in runs)
        rows.append([size_text(size), median(plain),
                     *(f"{plain['floor_fraction'] / s['floor_fraction']:.2f}" for s in sealed)])
    return table(["bytes", "plain", *(f"{run.removeprefix('sealing_')} / plain" for run in runs[1:])], rows)


def python(results, part):
    """Medians of the rounds. For steps, also the time that each backend adds to processes that do not
    communicate, as a fraction of gloo's: the quartiles over the rounds."""
    samples = {}
    for r in results:
        if r["part"] == part:
            samples.setdefault(r["what"], {}).setdefault(r["backend"], []).append(r["us"])
    order = ("alone", "reducer", "lockstep", "fake", "gloo", "peal")
    columns = [column for column in order if any(column in of for of in samples.values())]
    shares = {"peal adds, of what gloo adds": ("alone", "peal"), "of it the reducer": ("alone", "reducer"),
              "the wait": ("reducer", "lockstep"), "peal": ("lockstep", "peal")}
    rows = []
    for what, of in samples.items():
        us = {column: statistics.median(times) for column, times in of.items()}
        cells = [median({"median_us": us[c]}) if c in us else "" for c in columns]
        if part == "ddp":
            rounds = [dict(zip(of, times)) for times in zip(*of.values(), strict=True)]
            cells += [share_text(rounds, *share) for share in shares.values()]
        rows.append([what, *cells])
    return table(["", *columns, *(shares if part == "ddp" else [])], rows)


def steps(results, part):
    """The median step of processes that do not communicate, and the medians of the rounds' ratios to it."""
    samples = {}
    for r in results:
        if r["part"] == part:
            samples.setdefault(r["what"], {}).setdefault(r["backend"], []).append(r["us"])
    columns = list(dict.fromkeys(column for of in samples.values() for column in of if column != "alone"))
    rows = []
    for what, of in samples.items():
        ratios = ([us / alone for us, alone in zip(of[column], of["alone"], strict=True)] for column in columns)
        rows.append([what, median({"median_us": statistics.median(of["alone"])}),
                     *(f"{statistics.median(r):.3f}" for r in ratios)])
    return table(["", "alone", *columns], rows)


def share_text(rounds, base, to):
    def share(us):
        return (us[to] - us[base]) / (us["gloo"] - us["alone"])
    if len(rounds) == 1:
        return f"{share(rounds[0]):.2f}"
    quartiles = statistics.quantiles(map(share, rounds), n=4)
    low, middle, high = (round(value, 2) + 0.0 for value in quartiles)  # avoids -0.00
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def fill(folder, match):
    kind, *names = match["what"].split()
    has_argument = kind in ("faster", "python", "steps")
    missing = [n for n in names[has_argument:] if not (folder / f"{n}.jsonl").exists()]
    if missing:
        print(f"tables: {', '.join(missing)} is missing, so this table is not updated: {match['what']}")
        return match[0]
    if has_argument:
        text = {"faster": faster, "python": python, "steps": steps}[kind](load(folder, names[1:]), names[0])
    else:
        kinds = {"times": times, "in_place": in_place, "types": types, "hosts": hosts,
                 "sealing": sealing}
        text = kinds[kind](load(folder, names))
    return f"<!-- table {match['what']} -->\n{text}\n<!-- end -->"


def main():
    path = Path(sys.argv[1])
    folder = path.with_suffix("")
    pattern = re.compile(r"<!-- table (?P<what>.*?) -->\n.*?<!-- end -->", re.DOTALL)
    path.write_text(pattern.sub(lambda match: fill(folder, match), path.read_text()))


if __name__ == "__main__":
    main()
