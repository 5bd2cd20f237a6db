"""More than a server can do: it must do as much as before, say no to the rest at once, and stay reachable."""

import re
import shutil
import subprocess
import tempfile

import http2
from kit import (ANALYSIS, CATALOG, ESTIMATE, HEALTH, PLANNER, SEARCH, Load, Options, ResidentWatch, Server, check,
                 check_alive, cpu_seconds, end_well, on_cpus, question_bytes, run_load)
from kit import questions

RPCS = (  # name, request: what a scheduler asks
    (PLANNER + "EstimateTraining", ESTIMATE), (PLANNER + "EstimateTraining", SEARCH),
    (PLANNER + "EstimateServing", questions.SERVING_BATCH), (PLANNER + "EstimateServing", questions.SERVING_RATE),
    (PLANNER + "ProposeSharding", questions.SMALL_SEARCH),
    (ANALYSIS + "DescribeModel", {"model": {"preset": "llama-3-70b"}}),
    (CATALOG + "ListAccelerators", {"pageSize": 10}), (HEALTH, {}))
WORDS = ("a plan given", "the plan searched", "a batch, plan given", "a rate, replayed", "two slices", "a preset",
         "ten of them", "")

OVERLOAD_FACTOR = 10
MIN_GOODPUT_RATIO = 0.9
MAX_HEALTH_P99_MS = 50
MAX_GROWTH_BYTES = 64 << 20


def load(table):
    """Every kind of call as fast as 16 in flight go, and its CPU time on the server."""
    for (method, request), words in zip(RPCS, WORDS):
        server = Server()
        run_load(server.address, method, request, seconds=Options.seconds(1, 0.1))
        before = cpu_seconds(server)
        with ResidentWatch(server) as resident:
            result = run_load(server.address, method, request, seconds=Options.seconds(8, 0.3))
        cpu_us = (cpu_seconds(server) - before) / max(result["calls"], 1) * 1e6
        name = method.rpartition("/")[2] if method != HEALTH else "health"
        table.row(f"{name} ({words}): {result['per_second']:,.0f}/s, {cpu_us:,.0f} us CPU a call"
                  .replace(" ()", ""), result, resident)
        check(result["failed"] == 0, f"{name}: {result['failures']} {result['first_failure']}")
        end_well(server)


def h2load(table):
    """The same question from a C client of another make (Debian's nghttp2-client), which sees HTTP and no gRPC."""
    program = shutil.which("h2load")
    if program is None:
        table.row("not run: needs Debian's package nghttp2-client")
        return
    server = Server()
    count = Options.seconds(100_000, 500)
    with tempfile.NamedTemporaryFile() as body:
        body.write(http2.message(question_bytes(ESTIMATE)))
        body.flush()
        before = cpu_seconds(server)
        done = subprocess.run(
            [program, "-n", str(count), "-c", "4", "-m", "16", "-d", body.name, "-H", "content-type: application/grpc",
             "-H", "te: trailers", f"http://{server.address}/{PLANNER}EstimateTraining"],
            capture_output=True, text=True, timeout=600, check=True)
    cpu_us = (cpu_seconds(server) - before) / count * 1e6
    rate = re.search(r"([\d.]+) req/s", done.stdout)[1]
    failed = int(re.search(r"(\d+) failed", done.stdout)[1])
    end_well(server)  # before its log is read: it is written in pieces
    answered = sum(line.get("code") == "OK" for line in server.log_records())
    table.row(f"h2load, 4 connections of 16 calls: {float(rate):,.0f}/s, {cpu_us:,.0f} us CPU a call",
              calls=f"{count:,}", failed=count - answered)
    check(failed == 0 and answered == count, f"{failed} failed over HTTP/2, {answered} were answered OK")


def overload(table):
    """Searches at ten times the rate that the server can do on one CPU, health asked meanwhile; callers on another."""
    with on_cpus(0):
        server = Server()
    seconds = Options.seconds(60, 3)
    with on_cpus(1):
        run_load(server.address, request=SEARCH, seconds=Options.seconds(2, 0.5), in_flight=8)
        peak = run_load(server.address, request=SEARCH, seconds=Options.seconds(10, 1), in_flight=8)
        table.row(f"peak on one CPU: searches, 8 in flight, {peak['per_second']:,.0f}/s", peak)
        rate = peak["per_second"] * OVERLOAD_FACTOR
        with ResidentWatch(server) as resident:
            # Without retries, each refusal counts.
            flood = Load(server.address, request=SEARCH, seconds=seconds, rate=rate, in_flight=4096, connections=16,
                         max_attempts=1, timeout=5).wait_until_running()
            health = Load(server.address, HEALTH, {}, seconds=max(seconds - 1, 1), rate=50, max_attempts=1)
            health, flood = health.result(), flood.result()
    good = flood["ok"] / flood["seconds"]
    refused = flood["failures"].get("RESOURCE_EXHAUSTED", 0)
    table.row(f"{OVERLOAD_FACTOR} x peak ({rate:,.0f}/s) for {seconds} s: {good:,.0f}/s answered "
              f"({good / peak['per_second']:.0%} of peak), {refused:,} refused, {flood['unsent']:,} not sent in time",
              flood, resident)
    table.row("health meanwhile, 50/s", health)
    check_alive(server)
    check(set(flood["failures"]) <= {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}, f"failures: {flood['failures']}")
    check(health["failed"] == 0, f"health: {health['failures']}")
    check(resident.largest - resident.before < MAX_GROWTH_BYTES, f"memory grew: {resident.cell()}")
    if not Options.short:
        check(good >= MIN_GOODPUT_RATIO * peak["per_second"], "goodput fell")
        check(health["p99_ms"] <= MAX_HEALTH_P99_MS, f"health p99 {health['p99_ms']:.1f} ms")


def soak(table):
    """Half load of mixed calls; memory must be flat."""
    server = Server()
    seconds = Options.seconds(1800, 5)
    run_load(server.address, seconds=Options.seconds(60, 1), rate=500)
    with ResidentWatch(server) as resident:
        loads = [Load(server.address, method, request, seconds=seconds, rate=rate)
                 for (method, request), rate in zip(RPCS, (500, 20, 100, 5, 5, 100, 20, 10))]
        results = [one.result() for one in loads]
    for (method, _), words, result in zip(RPCS, WORDS, results):
        table.row(f"{method.rpartition('/')[2]} {words}, {seconds} s", result)
    table.row("memory of all", resident=resident)
    reasons = {(code, result["first_failure"]) for result in results for code in result["failures"]}
    check(not reasons, f"failures: {reasons}")
    end_well(server)
    check(resident.after - resident.before < MAX_GROWTH_BYTES / 4, f"memory grew: {resident.cell()}")


DRILLS = {"load": load, "h2load": h2load, "overload": overload, "soak": soak}
