"""Puts tables of measurements into a Markdown file: tables.py FILE.

A table stands between the comments `<!-- table KIND NAME... -->` and `<!-- end -->`; NAME.jsonl is
what `peal bench --json` wrote, in a folder named as the file is without its ending. Kinds:

times    one operation: median times and floor, a row for each size
faster   how many times as fast as a peer, a row for each operation: `faster PEER NAME...`
types    time per byte against that of f32
hosts    one operation between hosts: times, and the bare stream's
"""
import json
import re
import sys
from pathlib import Path


def load(folder, names):
    return [json.loads(line) for name in names for line in (folder / f"{name}.jsonl").open()]


def size_text(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def time_text(us):
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def table(head, rows):
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def find(results, **fields):
    found = [r for r in results if all(r[k] == v for k, v in fields.items())]
    return found[0] if found else None


def shape(result):
    """What tells rows apart besides the size, where a file has more than one of it."""
    return result["np"], result["hosts"]


def times(results):
    peers = [b for b in ("openmpi", "mpich", "gloo") if any(r["backend"] == b for r in results)]
    rows = []
    for ranks in sorted({r["np"] for r in results}):
        for size in sorted({r["bytes"] for r in results}):
            of = [r for r in results if r["np"] == ranks and r["bytes"] == size]
            ours = [find(of, backend="peal", variant=v) for v in ("registered", "foreign")]
            rows.append(
                [f"{ranks}", size_text(size)]
                + [time_text(r["median_us"]) if r else "" for r in ours]
                + [time_text(min(r["median_us"] for r in of if r["backend"] == "probe"))]
                + [f"{ours[0]['floor_fraction']:.2f}"]
                + [time_text(find(of, backend=b)["median_us"]) for b in peers]
                + [f"{r['times_faster'][peers[0]]:.3g}" for r in ours])
    head = ["ranks", "bytes", "registered", "foreign", "probe", "floor", *peers,
            f"registered x {peers[0]}", f"foreign x {peers[0]}"]
    return table(head, rows)


def faster(results, peer):
    ours = [r for r in results if r["backend"] == "peal"]
    sizes = sorted({r["bytes"] for r in ours})
    sizes = [s for s in sizes if not any(0 < s - t < 64 and s > 4 for t in sizes if t < s)]
    rows = []
    for op in dict.fromkeys(r["op"] for r in ours):
        for variant in ("registered", "foreign"):
            of = sorted((r for r in ours if (r["op"], r["variant"]) == (op, variant)),
                        key=lambda r: r["bytes"])
            rows.append([op, variant] + [f"{r['times_faster'][peer]:.2g}" for r in of])
    return table(["", ""] + [size_text(s) for s in sizes], rows)


def types(results):
    rows = []
    for size in sorted({r["bytes"] for r in results}):
        of = {r["dtype"]: r for r in results if r["bytes"] == size and r["backend"] == "peal"}
        f32 = of["f32"]["median_us"]
        rows.append([size_text(size), time_text(f32)]
                    + [f"{of[t]['median_us'] / f32:.2f}" for t in ("bf16", "f16")])
    return table(["bytes", "f32", "bf16 / f32", "f16 / f32"], rows)


def hosts(results):
    peers = [b for b in ("gloo", "openmpi") if any(r["backend"] == b for r in results)]
    rows = []
    for count, ranks in sorted({(r["hosts"], r["np"]) for r in results}):
        of_hosts = [r for r in results if (r["hosts"], r["np"]) == (count, ranks)]
        for size in sorted({r["bytes"] for r in of_hosts}):
            of = [r for r in of_hosts if r["bytes"] == size]
            ours = min((r for r in of if r["backend"] == "peal"), key=lambda r: r["median_us"])
            stream = find(of, backend="stream")
            rows.append(
                [f"{count} x {ranks // count}", size_text(size), time_text(ours["median_us"]),
                 time_text(stream["median_us"]) if stream else "",
                 f"{ours['floor_fraction']:.2f}" if ours["floor_fraction"] else ""]
                + [f"{ours['times_faster'][b]:.3g}" if b in ours["times_faster"] else ""
                   for b in peers]
                + [f"{ours['host_tx_bytes'] / size:.3f}"])
    return table(["hosts x ranks", "bytes", "peal", "stream", "stream / peal",
                  *(f"x {b}" for b in peers), "sent / bytes"], rows)


def fill(folder, match):
    kind, *names = match["what"].split()
    missing = [n for n in names[kind == "faster":] if not (folder / f"{n}.jsonl").exists()]
    if missing:
        print(f"tables: left as it is for want of {', '.join(missing)}: {match['what']}")
        return match[0]
    if kind == "faster":
        text = faster(load(folder, names[1:]), names[0])
    else:
        text = {"times": times, "types": types, "hosts": hosts}[kind](load(folder, names))
    return f"<!-- table {match['what']} -->\n{text}\n<!-- end -->"


def main():
    path = Path(sys.argv[1])
    folder = path.with_suffix("")
    pattern = re.compile(r"<!-- table (?P<what>.*?) -->\n.*?<!-- end -->", re.DOTALL)
    path.write_text(pattern.sub(lambda match: fill(folder, match), path.read_text()))


if __name__ == "__main__":
    main()
