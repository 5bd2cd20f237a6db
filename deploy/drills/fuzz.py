"""Requests that no client library would send: none may crash the server, hang, or be INTERNAL."""

import collections
import random
import threading
import time

import grpc
from google.protobuf import json_format

from kit import ANALYSIS, CATALOG, ESTIMATE, PLANNER, Options, ResidentWatch, SEARCH, Server, check, check_alive
from kit import questions

CALLS = 1_000_000
AT_ONCE = 64
CALL_SECONDS = 20
BUGS = {"INTERNAL", "UNKNOWN", "DATA_LOSS", "DEADLINE_EXCEEDED", "UNAVAILABLE"}

SEEDS = (
    (PLANNER, "EstimateTraining", "training", (ESTIMATE, SEARCH, questions.FIVE_VIOLATIONS)),
    (PLANNER, "EstimateServing", "serving", (questions.SERVING_BATCH, questions.SERVING_RATE, questions.SERVING_APART)),
    (PLANNER, "ProposeSharding", "sharding", (questions.SMALL_SEARCH, questions.SERVING_SEARCH)),
    (ANALYSIS, "DescribeModel", "model_description", ({"model": {"preset": "deepseek-v3"}},)),
    (ANALYSIS, "AnalyzeOperation", "operation", ({"matmul": {"m": "512", "k": "4096", "n": "8192"}},)),
    (ANALYSIS, "AnalyzeCollective", "collective",
     ({"slice": {"acceleratorType": "v5p-128"}, "kind": "COLLECTIVE_KIND_ALL_GATHER", "bytes": "1048576"},)),
    (ANALYSIS, "CompareMeasurement", "measurement", ({},)),
    (CATALOG, "ListAccelerators", "catalog", ({"filter": "kind=TPU", "pageSize": 3},)),
    (CATALOG, "ListSlices", "catalog", ({"filter": "chip_count=64"},)),
    (CATALOG, "ListPrices", "catalog", ({"filter": "provider=gcp"},)),
    (CATALOG, "ListModels", "catalog", ({"filter": "name:\"llama\""},)),
)
NUMBERS = (b"\0", b"\1", b"\x7f", b"\xff" * 9 + b"\1", b"\x80" * 9 + b"\1",  # varints: 64 bits, 32 bits
           b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10")


def _seeds():
    import wire
    for service, method, file, requests in SEEDS:
        message = getattr(wire.module(f"sliceplan.v1.{file}_pb2"), method + "Request")
        for request in requests:
            yield "/" + service + method, json_format.ParseDict(request, message()).SerializeToString()


def damaged(data, chooser):
    """Like libFuzzer's own mutations: bits, bytes, varints, pieces cut, doubled and moved."""
    data = bytearray(data)
    for _ in range(chooser.choice((1, 1, 1, 2, 3, 8))):
        at = chooser.randrange(len(data) + 1)
        way = chooser.randrange(6)
        if way == 0 and at < len(data):
            data[at] ^= 1 << chooser.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = chooser.randrange(256)
        elif way == 2:
            data[at:at + chooser.randint(0, 4)] = chooser.choice(NUMBERS)
        elif way == 3:
            del data[at:at + chooser.randint(1, 16)]
        elif way == 4:
            start = chooser.randrange(len(data) + 1)
            data[at:at] = data[start:start + chooser.randint(1, 32)]
        else:
            data[at:at] = chooser.randbytes(chooser.randint(1, 8))
    return bytes(data)


def fuzz(table):
    """Damaged requests to every RPC."""
    server = Server("--log_level=error")
    seeds, chooser = list(_seeds()), random.Random(1)
    count = Options.seconds(CALLS, 1_500)
    codes, bad = collections.Counter(), []
    room = threading.Semaphore(AT_ONCE)
    with ResidentWatch(server) as resident, grpc.insecure_channel(server.address) as channel:
        stubs = {path: channel.unary_unary(path) for path, _ in seeds}
        started = time.monotonic()

        def ended(call, path, request):
            name = call.code().name
            codes[name] += 1
            if name in BUGS and len(bad) < 5:
                bad.append((path, name, call.details(), request.hex()))
            room.release()

        for _ in range(count):
            path, seed = chooser.choice(seeds)
            request = damaged(seed, chooser)
            check(room.acquire(timeout=2 * CALL_SECONDS), "calls hang")
            call = stubs[path].future(request, timeout=CALL_SECONDS)
            call.add_done_callback(lambda call, path=path, request=request: ended(call, path, request))
        for _ in range(AT_ONCE):
            check(room.acquire(timeout=2 * CALL_SECONDS), "calls hang")
        seconds = time.monotonic() - started
    words = ", ".join(f"{name} {number:,}" for name, number in codes.most_common())
    table.row(f"damaged requests to {len(stubs)} RPCs in {seconds:.0f} s: {words}", calls=f"{count:,}",
              failed=f"{sum(codes[name] for name in BUGS):,}", resident=resident)
    for path, name, details, request in bad:
        print(f"    {path} {name} {details!r}: {request}")
    check(server.process.poll() is None, "the server crashed")
    check_alive(server)
    check(not bad, f"bugs: {[(path, name, details) for path, name, details, _ in bad]}")


DRILLS = {"fuzz": fuzz}
