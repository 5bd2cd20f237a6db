"""What the drills share: servers, loads of the program sliceplan-load, resident memory, and the table at the end.

Servers are those of the end-to-end tests (tests/e2e/running_server.py); nothing leaves the loopback interface.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "tests", "e2e"))

from harness import Settings  # noqa: E402
import questions  # noqa: E402
from running_server import RunningServer  # noqa: E402

PLANNER = "sliceplan.v1.PlannerService/"
ANALYSIS = "sliceplan.v1.AnalysisService/"
CATALOG = "sliceplan.v1.CatalogService/"
HEALTH = "grpc.health.v1.Health/Check"

# A plan is given and the model is a preset: microseconds of work, answered where the bytes come in.
ESTIMATE = {"model": {"preset": "llama-3-70b"}, "slice": {"accelerator": "tpu-v5p", "topology": "16x16x16"},
            "workload": {"sequenceLength": 4096, "globalBatchTokens": "4194304"},
            "parallelism": {"ici": {"fsdp": 1024, "tensor": 4}}}
# Milliseconds on a worker, behind the queue.
SEARCH = {key: value for key, value in ESTIMATE.items() if key != "parallelism"}

DRAIN = ("--drain_delay=2s", "--grace=10s")


class Failed(AssertionError):
    """A drill whose promise was not kept."""


def check(condition, words):
    if not condition:
        raise Failed(words)


class Options:
    """How long and how hard; set by `drill.py`."""

    load_program = ""
    short = False
    scale = 1.0

    @classmethod
    def seconds(cls, full, short):
        """Seconds, or a count of things that take as long."""
        return short if cls.short else max(short, type(full)(full * cls.scale))


@contextlib.contextmanager
def on_cpus(*cpus):
    """What is started in the block runs on these CPUs alone: servers and callers as on machines of their own."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cpus) & before or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Server(RunningServer):
    """One that is gone when its drill is over, whatever happened."""

    running = []

    def __init__(self, *flags):
        super().__init__(*flags)
        self.running.append(self)

    @classmethod
    def kill_all(cls):
        while cls.running:
            cls.running.pop().kill()


class Load:
    """One run of sliceplan-load in a process of its own. `result()` waits for its end."""

    def __init__(self, target, method=PLANNER + "EstimateTraining", request=None, *, seconds, rate=0, in_flight=16,
                 connections=1, timeout=30, max_attempts=None, flags=()):
        self.request_file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
        json.dump(ESTIMATE if request is None else request, self.request_file)
        self.request_file.flush()
        command = [
            Options.load_program, f"--target={target}", f"--method={method}", f"--request={self.request_file.name}",
            f"--length={seconds}s", f"--rate={rate}", f"--in_flight={in_flight}", f"--connections={connections}",
            f"--timeout={timeout}s", *flags]
        if max_attempts is not None:
            command.append(f"--max_attempts={max_attempts}")
        self.limit_seconds = seconds + timeout + 60
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_until_running(self):
        """Until the first call has gone well."""
        line = self.process.stdout.readline()
        check(line == "running\n", f"the load did not run: {line!r}")
        return self

    def result(self):
        """The JSON object that it prints."""
        try:
            out, err = self.process.communicate(timeout=self.limit_seconds)
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            raise Failed("the load did not end: calls hang") from late
        finally:
            self.request_file.close()
        check(self.process.returncode == 0, f"the load ended with {self.process.returncode}: {err}")
        result = json.loads(out.splitlines()[-1])
        result["failed"] = result["calls"] - result["ok"]
        result["per_second"] = result["ok"] / max(result["seconds"], 1e-9)
        return result


def run_load(*arguments, **options):
    return Load(*arguments, **options).result()


def target_of(servers):
    """Several replicas as one target, as a headless Service's name resolves to."""
    return "ipv4:" + ",".join(server.address for server in servers)


def question_bytes(question):
    """EstimateTrainingRequest on the wire."""
    from google.protobuf import json_format
    import wire
    request = wire.module("sliceplan.v1.training_pb2").EstimateTrainingRequest()
    return json_format.ParseDict(question, request).SerializeToString()


class ResidentWatch:
    """Largest resident memory of a server while the block runs."""

    def __init__(self, server):
        self.server = server
        self.before = self.largest = self.after = server.resident_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        if self.server.process.poll() is None:
            self.after = self.server.resident_bytes()
            self.largest = max(self.largest, self.after)

    def _watch(self):
        while not self._ended.wait(0.2):
            try:
                self.largest = max(self.largest, self.server.resident_bytes())
            except (AssertionError, OSError):  # ended
                return

    def cell(self):
        return f"{self.before / 1e6:.0f}, at most {self.largest / 1e6:.0f}"


def cpu_seconds(server):
    """User and system time that a server has used."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_alive(server):
    """Answers, has logged nothing but JSON and no error of its own making, and ends well."""
    after = run_load(server.address, seconds=0.2, in_flight=1)
    check(after["failed"] == 0, f"calls fail afterwards: {after}")
    end_well(server)


def end_well(server):
    status = server.terminate()
    check(status == 0, f"exit status {status}: " + "\n".join(server.log_lines[-5:]))
    internal = [line for line in server.log_records() if line.get("code") in ("INTERNAL", "UNKNOWN", "DATA_LOSS")]
    check(not internal, f"INTERNAL: {internal[:3]}")


class Table:
    """Rows of all drills, printed as Markdown."""

    HEAD = ("drill", "what was done", "calls", "failed", "p50 ms", "p99 ms", "RSS MB")

    def __init__(self):
        self.rows = []
        self.drill = ""

    def row(self, what, result=None, resident="", **cells):
        """`result` of a load; named cells replace its own."""
        values = {"calls": "", "failed": "", "p50_ms": "", "p99_ms": ""}
        if result is not None:
            values = {"calls": f"{result['calls']:,}", "failed": f"{result['failed']:,}",
                      "p50_ms": f"{result['p50_ms']:.2f}", "p99_ms": f"{result['p99_ms']:.2f}"}
        values.update({name: str(value) for name, value in cells.items()})
        resident = resident.cell() if isinstance(resident, ResidentWatch) else resident
        self.rows.append((self.drill, what, *values.values(), resident))
        print("  " + " | ".join(self.rows[-1]), flush=True)

    def print(self):
        print("\n| " + " | ".join(self.HEAD) + " |\n| " + " | ".join("---" for _ in self.HEAD) + " |")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")
