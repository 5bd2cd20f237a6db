"""What fails around a running server: HTTP clients that never finish, certificates that change, a full disk."""

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from http_client import HttpClient
from kit import ESTIMATE, PLANNER, Load, Options, ResidentWatch, Server, check, end_well

HTTP_THREADS = 128  # server/rpc/http/http_server.h
MAX_GROWTH_BYTES = 64 << 20
RATE = 100


class _HttpCaller:
    """Good calls over HTTP, each on a connection of its own: a pool that is full shows at once."""

    def __init__(self, port, seconds, pause=0.05):
        self.result = {"calls": 0, "failed": 0, "failures": {}}
        self._times = []
        self._arguments = (port, seconds, pause)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        port, seconds, pause = self._arguments
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            try:
                with HttpClient(port) as client:
                    outcome = client.call(PLANNER + "EstimateTraining", ESTIMATE).status
            except OSError as error:
                outcome = type(error).__name__
            self._times.append(time.monotonic() - start)
            self.result["calls"] += 1
            if outcome != 200:
                self.result["failed"] += 1
                self.result["failures"][outcome] = self.result["failures"].get(outcome, 0) + 1
            time.sleep(pause)

    def wait(self):
        self._thread.join()
        self._times.sort()
        for name, part in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            self.result[name] = self._times[int(part * (len(self._times) - 1))] * 1e3
        return self.result


def _drip(port, count, ended):
    """Keeps `count` connections that send a request a byte at a time; one that is closed is opened again. The number
    of those that the server closed."""
    request = b"POST /" + PLANNER.encode() + b"EstimateTraining HTTP/1.1\r\nHost: a\r\nX-Slow: " + b"a" * 4096
    plain, sent, closed = [None] * count, [0] * count, 0
    while not ended.is_set():
        for number in range(count):
            try:
                if plain[number] is None:
                    plain[number], sent[number] = socket.create_connection(("127.0.0.1", port), timeout=10), 0
                plain[number].sendall(request[sent[number]:sent[number] + 1])
                sent[number] += 1
            except OSError:
                closed += 1
                plain[number].close()
                plain[number] = None
        ended.wait(0.1)
    for one in plain:
        if one is not None:
            one.close()
    return closed


def slowloris(table):
    """Three times as many HTTP connections as there are threads, each sending a byte now and then."""
    server = Server("--http_port=0", "--drain_delay=0s")
    count, seconds = 3 * HTTP_THREADS, Options.seconds(60, 6)
    ended, closed = threading.Event(), []
    with ResidentWatch(server) as resident:
        attacker = threading.Thread(target=lambda: closed.append(_drip(server.http_port, count, ended)))
        attacker.start()
        time.sleep(1)
        over_grpc = Load(server.address, seconds=seconds, rate=RATE, max_attempts=1)
        over_http = _HttpCaller(server.http_port, seconds).wait()
        over_grpc = over_grpc.result()
        ended.set()
        attacker.join()
    table.row(f"{count} HTTP connections that send a byte every 0.1 s, opened again when closed ({closed[0]:,} were); "
              "beside them calls over HTTP, each on a new connection", over_http, resident)
    table.row(f"the same; {RATE}/s over gRPC", over_grpc)
    end_well(server)
    check(closed[0] > 0, "no slow connection was closed")
    check(over_http["failed"] == 0, f"over HTTP: {over_http['failures']}")
    check(over_grpc["failed"] == 0, f"over gRPC: {over_grpc['failures']}")
    check(resident.largest - resident.before < MAX_GROWTH_BYTES, f"memory grew: {resident.cell()}")


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def _issue(directory, number):
    """A new key with a certificate for localhost, put in the place of the old pair at once, as a Secret is."""
    new = os.path.join(directory, str(number))
    os.mkdir(new)
    key, request, certificate = (os.path.join(new, name) for name in ("key.pem", "request.pem", "cert.pem"))
    extensions = os.path.join(new, "extensions")
    with open(extensions, "w", encoding="ascii") as file:
        file.write("subjectAltName=DNS:localhost\n")
    _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server",
             "-keyout", key, "-out", request)
    _openssl("x509", "-req", "-in", request, "-CA", os.path.join(directory, "ca.pem"), "-CAkey",
             os.path.join(directory, "ca.key"), "-set_serial", str(number + 1), "-days", "1", "-extfile", extensions,
             "-out", certificate)
    link = os.path.join(directory, "now")
    os.symlink(str(number), link + "_new")
    os.replace(link + "_new", link)


def certificates(table):
    """The server's certificate and key replaced again and again under load; connections are short-lived."""
    if shutil.which("openssl") is None:
        table.row("not run: needs Debian's package openssl")
        return
    changes = Options.seconds(10, 2)
    with tempfile.TemporaryDirectory(prefix="sliceplan-drill-") as directory:
        authority = os.path.join(directory, "ca.pem")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                 "-subj", "/CN=authority", "-keyout", os.path.join(directory, "ca.key"), "-out", authority)
        _issue(directory, 0)
        server = Server(f"--tls_cert={directory}/now/cert.pem", f"--tls_key={directory}/now/key.pem",
                        "--tls_refresh=1s", "--drain_delay=0s")
        target, flags = f"dns:///localhost:{server.port}", (f"--tls_ca={authority}",)
        result = {"calls": 0, "failed": 0, "p50_ms": 0.0, "p99_ms": 0.0}
        with ResidentWatch(server) as resident:
            # One client stays, the others come with new handshakes between the changes.
            stays = Load(target, seconds=3 * changes, rate=RATE, max_attempts=1, flags=flags).wait_until_running()
            come = []
            for number in range(1, changes + 1):
                _issue(directory, number)
                come.append(Load(target, seconds=1, rate=RATE, max_attempts=1, connections=4, flags=flags).result())
                server.wait_for_log(lambda line, count=number + 1: sum(
                    "certificate read" in text for text in server.log_lines) >= count)
            stays = stays.result()
        for one in come:
            result["calls"] += one["calls"]
            result["failed"] += one["failed"]
            for name in ("p50_ms", "p99_ms"):
                result[name] = max(result[name], one[name])
        table.row(f"certificate and key replaced {changes} times; a client that stays, {RATE}/s", stays, resident)
        table.row(f"the same; {4 * changes} clients that come with new handshakes (worst p50, p99)", result)
        failures = [one["failures"] for one in (stays, *come) if one["failed"]]
        end_well(server)
    check(not failures, f"failed calls: {failures}")


def full_disk(table):
    """The request log's file may grow no further: calls go on; records are lost, counted, and announced once."""
    with tempfile.TemporaryDirectory(prefix="sliceplan-drill-") as directory:
        server = Server("--http_port=0", "--drain_delay=0s", f"--request_log={directory}/requests.jsonl")
        with ResidentWatch(server) as resident:
            load = Load(server.address, seconds=Options.seconds(20, 3), rate=5 * RATE,
                        max_attempts=1).wait_until_running()
            # A limit of the process fails writes as a full disk does, and hurts no other process.
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (64 << 10, resource.RLIM_INFINITY))
            server.wait_for_log(lambda line: line["message"].startswith("the request log cannot be written"))
            result = load.result()
        with HttpClient(server.http_port) as client:
            samples = {name: value for (name, _), value in client.samples().items() if "request_log" in name}
        written, lost = (int(samples[f"sliceplan_request_log_{name}_total"]) for name in ("written", "lost"))
        with open(f"{directory}/requests.jsonl", encoding="utf-8") as file:
            lines = file.read().splitlines(keepends=True)
        announced = sum("the request log cannot be written" in line for line in server.log_lines)
        table.row(f"{5 * RATE}/s, the request log's file full at 64 KiB: {written:,} records written, {lost:,} lost, "
                  f"said {announced} time(s)", result, resident)
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']}")
    check(lost > 0 and written == len(lines), f"{written} written, {len(lines)} in the file, {lost} lost")
    check(all(line.endswith("\n") for line in lines), "half a record was left in the file")
    check(announced == 1, f"announced {announced} times")


DRILLS = {"slowloris": slowloris, "certificates": certificates, "full-disk": full_disk}
