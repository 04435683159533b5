#!/usr/bin/env python3
"""Measures the time of a job that starts many ranks over ssh on 1 to 8 test hosts, lets the ranks meet, and ends.

    sudo bench/many_ranks.py [BIN] [--ranks 256,512] [--hosts 1,2,4,8]    # BIN: the folder of peal and first

The hosts are those of tests/engines: sshds in namespaces of this machine, so all ranks share its cores. Prints the
seconds of each run, and the load of the machine before it.
"""
import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/engines"))
import ssh_hosts
from ssh_hosts import SshHosts

LIMIT = 300  # seconds


def numbers(text):
    return [int(word) for word in text.split(",")]


def seconds_of(world, programs, ranks, hosts):
    slots = ",".join(f"node{index + 1}:{-(-ranks // hosts)}" for index in range(hosts))
    begin = time.monotonic()
    run = world.run([programs / "peal", "run", "-n", str(ranks), "-H", slots, programs / "first"], timeout=LIMIT)
    seconds = time.monotonic() - begin
    if run.returncode != 0:
        sys.exit(f"{ranks} ranks on {hosts} hosts: {run.stdout[-2000:]}")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="?", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--ranks", default=[256, 512], type=numbers)
    parser.add_argument("--hosts", default=[1, 2, 4, 8], type=numbers)
    options = parser.parse_args()
    if reason := ssh_hosts.why_not():
        sys.exit(f"there can be no hosts here: {reason}")
    programs = options.programs.resolve()
    print("| ranks | hosts | seconds | load before |\n|---|---|---|---|", flush=True)
    with SshHosts(max(options.hosts), programs=[programs]) as world:
        for ranks in options.ranks:
            for hosts in options.hosts:
                load = os.getloadavg()[0]
                seconds = seconds_of(world, programs, ranks, hosts)
                print(f"| {ranks} | {hosts} | {seconds:.1f} | {load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
