"""Trains on handwritten digits with one process and with two. Called by scripts/demo.

Options that are not known here go to the training program, examples/mnist.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.request

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin"
MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
PATIENCE = 4  # seconds for the mirror to answer
MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


def is_whole(path, md5):
    return path.exists() and hashlib.md5(path.read_bytes()).hexdigest() == md5


def mirror_answers():
    """Looking up a name has no timeout of its own, so a thread does it that may be left behind."""
    answered = threading.Event()

    def ask():
        try:
            urllib.request.urlopen(MIRROR + next(iter(MD5)), timeout=PATIENCE).close()
            answered.set()
        except OSError:
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return answered.is_set()


def download(name, path):
    with urllib.request.urlopen(MIRROR + name, timeout=PATIENCE) as answer:
        text = answer.read()
    if hashlib.md5(text).hexdigest() != MD5[name]:
        raise OSError(f"{MIRROR}{name} is not the file that it should be")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def fetch_mnist():
    """The folder that holds MNIST, from the user's cache or from the mirror; None where there is
    neither."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "peal/mnist"
    missing = [name for name, md5 in MD5.items() if not is_whole(folder / name, md5)]
    if missing and not mirror_answers():
        print(f"MNIST's mirror does not answer within {PATIENCE} seconds: "
              "training on generated digits. (--data DIR reads MNIST's own files.)", flush=True)
        return None
    try:
        for name in missing:
            print(f"fetching {MIRROR}{name}", flush=True)
            download(name, folder / name)
    except OSError as error:
        print(f"MNIST could not be fetched ({error}): training on generated digits.", flush=True)
        return None
    print(f"training on MNIST in {folder}", flush=True)
    return folder


def train(ranks, cores, arguments):
    """Runs examples/mnist with so many processes on so many cores; returns its report."""
    print(f"\n{ranks} {'process' if ranks == 1 else 'processes'} on {len(cores)} "
          f"{'core' if len(cores) == 1 else 'cores'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [PROGRAMS / "peal", "run", "-n", str(ranks), "--no-prefix",
                   PROGRAMS / "mnist", "--ddp", "--report", report, *arguments]
        run = subprocess.run(command, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        if run.returncode != 0:
            sys.exit(run.returncode)
        return json.loads(report.read_text())


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="a folder with MNIST's own files")
    options, others = parser.parse_known_args()
    folder = options.data or fetch_mnist()
    arguments = [*(["--data", str(folder)] if folder else []), *others]

    # The same share of the machine for every process: what is compared is one process against two
    # such, not a machine that is half idle against a full one.
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // 2)
    one = train(1, cores[:share], [*arguments, "--epochs", "1"])
    two = train(2, cores[:2 * share], arguments)

    ratio = two["samples_per_second"] / one["samples_per_second"]
    each = "sharing the only core" if len(cores) == 1 else (
        "one core each" if share == 1 else f"{share} cores each")
    print(f"""
digits                       {two["data"]}
loss                         {two["loss"]:.4f}
accuracy, held-out digits    {two["accuracy"]:.2%}
samples/s, one process       {one["samples_per_second"]:,.0f}
samples/s, two processes     {two["samples_per_second"]:,.0f}

Two processes ({each}) took half of every batch each, averaged their gradients while \
backward still ran, and trained one network together at {ratio:.2f} times the speed of one such \
process.""")


main()
