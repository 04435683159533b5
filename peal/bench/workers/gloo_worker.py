"""The worker of `peal bench` for gloo, from the torch of the active Python.

Arguments: SOCKET FLAGS spin|yield RANK RANKS MEETING_FILE. It follows peal/bench/protocol.h and
worker.cpp; values are as in values.h.
"""
import array
import ctypes
import mmap
import os
import re
import socket
import sys
import time

import torch
import torch.distributed as dist

SOCKET, FLAGS, WAITING, RANK, RANKS, MEETING = sys.argv[1:7]
RANK, RANKS = int(RANK), int(RANKS)
LAST = RANKS - 1
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
          "u8": torch.uint8}
WITH_BLOCKS = ("reduce_scatter", "all_gather", "gather", "scatter", "all_to_all")
# The error texts of gloo and torch for unsupported operations and types.
MISSING = re.compile("invalid scalar type|unsupported|not support|not implemented", re.IGNORECASE)
CHUNK = 1 << 20  # elements for each step of a check


class Flags:
    """The barrier of flags.h."""

    def __init__(self, path):
        fd = os.open(path, os.O_RDWR)
        self.memory = mmap.mmap(fd, 64 * RANKS)
        os.close(fd)
        self.counters = (ctypes.c_uint64 * (8 * RANKS)).from_buffer(self.memory)
        self.meetings = 0

    def meet(self):
        self.meetings += 1
        counters, meetings = self.counters, self.meetings
        counters[8 * RANK] = meetings
        for other in range(0, 8 * RANKS, 8):
            spins = 100 if WAITING == "spin" else 0
            while counters[other] < meetings:
                if spins > 0:
                    spins -= 1
                else:
                    time.sleep(20e-6)  # gloo's threads may still have to send


def values_at(rank, begin, end, modulus):
    index = torch.arange(begin, end, dtype=torch.int64)
    return (((index * 2654435761) & 0xffffffff) // 65536 + 7 * rank) % modulus


def sums_at(begin, end, modulus):
    return sum(values_at(rank, begin, end, modulus) for rank in range(RANKS))


class Case:
    def __init__(self, fields):
        self.op = fields["op"]
        self.count = count = int(fields["count"])
        self.modulus = int(fields["modulus"])
        whole = count * RANKS if self.op in WITH_BLOCKS else count
        root, end = RANK == 0, RANK in (0, LAST)
        gives = {"all_gather": count, "gather": count, "broadcast": whole * root,
                 "scatter": whole * root, "send_recv": whole * end, "barrier": 0}.get(self.op, whole)
        gets = {"reduce_scatter": count, "scatter": count, "reduce": whole * root,
                "gather": whole * root, "send_recv": whole * end, "barrier": 0}.get(self.op, whole)
        dtype = DTYPES[fields["dtype"]]
        own = slice(RANK * count, RANK * count + count)
        in_place = fields["place"] == "in"
        if self.op in ("all_reduce", "broadcast", "reduce"):
            memory = torch.zeros(whole, dtype=dtype)
            self.input, self.output = memory[:gives], memory[:gets]
            self.buffer = memory
        elif in_place and self.op == "all_gather":
            self.output = torch.zeros(whole, dtype=dtype)
            self.input = self.output[own]
        elif in_place and self.op == "reduce_scatter":
            self.input = torch.zeros(whole, dtype=dtype)
            self.output = self.input[own]
        elif in_place and root and self.op in ("gather", "scatter"):
            memory = torch.zeros(whole, dtype=dtype)
            self.input, self.output = memory[:gives], memory[:gets]
        else:
            self.input, self.output = torch.zeros(gives, dtype=dtype), torch.zeros(gets, dtype=dtype)
        self.begin = RANK * count if self.op in ("all_gather", "gather") else 0
        self.run = getattr(self, self.op)

    def fill_input(self):
        for at in range(0, len(self.input), CHUNK):
            end = min(at + CHUNK, len(self.input))
            self.input[at:end] = values_at(RANK, self.begin + at, self.begin + end, self.modulus)

    def expected(self, at, end):
        count, modulus = self.count, self.modulus
        if self.op in ("all_reduce", "reduce"):
            return sums_at(at, end, modulus)
        if self.op == "reduce_scatter":
            return sums_at(RANK * count + at, RANK * count + end, modulus)
        if self.op == "broadcast":
            return values_at(0, at, end, modulus)
        if self.op == "scatter":
            return values_at(0, RANK * count + at, RANK * count + end, modulus)
        if self.op == "send_recv":
            return values_at(LAST if RANK == 0 else 0, at, end, modulus)
        index = torch.arange(at, end, dtype=torch.int64)
        source = index // count
        if self.op == "all_to_all":
            index = RANK * count + index % count
        return (((index * 2654435761) & 0xffffffff) // 65536 + 7 * source) % modulus

    def find_wrong(self):
        for at in range(0, len(self.output), CHUNK):
            end = min(at + CHUNK, len(self.output))
            got, expected = self.output[at:end].to(torch.int64), self.expected(at, end)
            wrong = (got != expected).nonzero()
            if len(wrong):
                i = int(wrong[0])
                return f"index {at + i}: got {self.output[at + i].item()}, expected {int(expected[i])}"
        return None

    def all_reduce(self):
        dist.all_reduce(self.buffer)

    def reduce(self):
        dist.reduce(self.buffer, 0)

    def broadcast(self):
        dist.broadcast(self.buffer, 0)

    def all_gather(self):
        dist.all_gather_into_tensor(self.output, self.input)

    def reduce_scatter(self):
        dist.reduce_scatter_tensor(self.output, self.input)

    def gather(self):
        dist.gather(self.input, list(self.output.split(self.count)) if RANK == 0 else None, 0)

    def scatter(self):
        dist.scatter(self.output, list(self.input.split(self.count)) if RANK == 0 else None, 0)

    def all_to_all(self):
        dist.all_to_all_single(self.output, self.input)

    def send_recv(self):
        if RANK == 0:
            dist.send(self.input, LAST)
            dist.recv(self.output, LAST)
        elif RANK == LAST:
            dist.recv(self.output, 0)
            dist.send(self.input, 0)

    def barrier(self):
        dist.barrier()


def describe_failure(error):
    """One line: "missing ..." if gloo lacks the type or the operation, else "failed ..."."""
    text = (str(error).splitlines() or [""])[0]
    is_missing = isinstance(error, NotImplementedError) or MISSING.search(text)
    return f"missing {text}" if is_missing else f"failed {type(error).__name__}: {text}"


def prepare(fields, flags):
    case = Case(fields)
    case.fill_input()
    flags.meet()
    try:
        case.run()
    except Exception as error:
        return None, describe_failure(error)
    wrong = case.find_wrong()
    return case, f"wrong {wrong}" if wrong else "ok 0"


def measure(fields, case, flags):
    warmup, iterations, batch = (int(fields[key]) for key in ("warmup", "iterations", "batch"))
    rewrites = fields["rewrite"] == "1" and len(case.input) > 0
    times = array.array("q")
    for i in range(-warmup, iterations):
        if rewrites and batch == 1:
            case.input.fill_(1)
        flags.meet()
        begin = time.monotonic_ns()
        for _ in range(batch):
            if rewrites and batch > 1:
                case.input.fill_(1)  # about 3 us for all types, a hundredth of gloo's time
            case.run()
        end = time.monotonic_ns()
        if i >= 0:
            times.extend((begin, end))
    return times


def main():
    torch.set_num_threads(1)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(SOCKET)
    flags = Flags(FLAGS)
    dist.init_process_group("gloo", init_method=f"file://{MEETING}", rank=RANK, world_size=RANKS)
    connection.sendall(f"hello gloo {RANK} torch {torch.__version__}\n".encode())
    case = None
    for line in connection.makefile("r"):
        verb, *words = line.split()
        fields = dict(word.split("=", 1) for word in words)
        if verb == "prepare":
            case = None
            case, answer = prepare(fields, flags)
            connection.sendall(answer.encode() + b"\n")
        else:
            times = measure(fields, case, flags)
            connection.sendall(f"ok {len(times) // 2}\n".encode() + times.tobytes())
    os._exit(0)  # gloo's shutdown would wait for ranks that may have ended


if __name__ == "__main__":
    main()
