"""Clients that are slow, silent, too many, or broken: others must not notice."""

import os
import random
import resource
import signal
import socket

import http2
from kit import (ESTIMATE, HEALTH, PLANNER, Load, Options, ResidentWatch, Server, check, check_alive,
                 question_bytes, run_load, target_of)

MAX_GROWTH_BYTES = 128 << 20
MAX_GROWTH_BEYOND_LIMIT = 16 << 20
IDLE_CONNECTIONS = 10_000
HEALTHY_RATE = 100


def _healthy(server, seconds):
    return Load(server.address, seconds=seconds, rate=HEALTHY_RATE, timeout=Options.seconds(5, 30), max_attempts=1)


def slow_readers(table):
    """Clients that ask and never read, with flow control windows of one byte: once the server holds as many unread
    replies as it may, more calls take no more memory."""
    server = Server(f"--max_unread_reply_bytes={Options.seconds(64, 8) << 20}")
    payload, count, calls = question_bytes(ESTIMATE), Options.seconds(100, 20), 100
    with ResidentWatch(server) as resident:
        sockets = [http2.connect(server.port, [(http2.INITIAL_WINDOW_SIZE, 1)]) for _ in range(count)]
        failures, reached = {}, []
        for wave in range(2):
            for plain in sockets:
                for number in range(wave * calls, (wave + 1) * calls):
                    plain.sendall(http2.call("/" + PLANNER + "EstimateTraining", 2 * number + 1, payload))
            # With the library's retries: an innocent connection may be asked to read first, too.
            result = Load(server.address, seconds=Options.seconds(10, 2), rate=HEALTHY_RATE).result()
            failures.update(result["failures"])
            reached.append(server.resident_bytes())
            table.row(f"{count} clients with {calls} calls each that read nothing{', and again' if wave else ''}; "
                      f"beside them {HEALTHY_RATE}/s", result, resident)
    for plain in sockets:
        plain.close()
    check_alive(server)
    check(not failures, f"others failed: {failures}")
    check(reached[1] - reached[0] < MAX_GROWTH_BEYOND_LIMIT, f"memory grew: {reached}")


def half_open(table):
    """Clients that stop in the middle: half a preface, half a header, half a message, a stopped process."""
    server = Server()
    payload = question_bytes(ESTIMATE)
    whole = http2.PREFACE + http2.settings() + http2.call("/" + PLANNER + "EstimateTraining", 1, payload)
    count = Options.seconds(300, 60)
    with ResidentWatch(server) as resident:
        sockets = []
        for number in range(count):
            sockets.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            sockets[-1].sendall(whole[:number * len(whole) // count])
        stopped = Load(server.address, seconds=Options.seconds(20, 2), in_flight=64).wait_until_running()
        stopped.process.send_signal(signal.SIGSTOP)
        result = _healthy(server, Options.seconds(20, 2)).result()
        stopped.process.send_signal(signal.SIGCONT)
        stopped.result()
    table.row(f"{count} connections cut off at every byte of a call, a process stopped with 64 calls; "
              f"beside them {HEALTHY_RATE}/s", result, resident)
    for plain in sockets:
        plain.close()
    check_alive(server)
    check(result["failed"] == 0, f"others failed: {result['failures']}")


def idle_connections(table):
    """Thousands of connections that say hello and nothing else."""
    count = Options.seconds(IDLE_CONNECTIONS, 500)
    needed = 2 * count + 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        count = (hard - 1000) // 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard) if hard != resource.RLIM_INFINITY else needed, hard))
    server = Server()
    with ResidentWatch(server) as resident:
        sockets = [http2.connect(server.port) for _ in range(count)]
        result = _healthy(server, Options.seconds(20, 2)).result()
    each = (resident.largest - resident.before) / count / 1e3
    table.row(f"{count:,} idle connections ({each:.0f} kB each); beside them {HEALTHY_RATE}/s", result, resident)
    for plain in sockets:
        plain.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    check_alive(server)
    check(result["failed"] == 0, f"others failed: {result['failures']}")


def descriptors(table):
    """More connections than the server may have files: it must drain and end, for a supervisor to start it again."""
    server = Server("--drain_delay=1s", "--grace=2s")
    limit = len(os.listdir(f"/proc/{server.process.pid}/fd")) + 50
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    seconds = Options.seconds(20, 6)
    with Server("--drain_delay=1s", "--grace=2s") as other:
        load = Load(target_of([server, other]), seconds=seconds, rate=HEALTHY_RATE).wait_until_running()
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(2 * limit)]
        check(server.wait() == 0, "it did not drain")
        for plain in sockets:
            plain.close()
        again = Server(f"--port={server.port}")
        result = load.result()
        table.row(f"2 replicas, one with a limit of {limit} files and {len(sockets)} connections: it drains, ends and "
                  f"is started again; beside them {HEALTHY_RATE}/s", result)
        check_alive(again)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


def _broken(frames, chooser):
    """Bytes of a connection, damaged in one of the ways that bytes can be."""
    data = bytearray(frames)
    for _ in range(chooser.randint(1, 8)):
        way, at = chooser.randint(0, 3), chooser.randrange(len(data))
        if way == 0:
            data[at] = chooser.randrange(256)
        elif way == 1:
            del data[at:at + chooser.randint(1, 16)]
        elif way == 2:
            data[at:at] = chooser.randbytes(chooser.randint(1, 16))
        else:
            del data[at:]
        data = data or bytearray(b"\0")
    return bytes(data)


def broken_frames(table):
    """Connections whose bytes are damaged below gRPC."""
    server = Server()
    chooser = random.Random(1)
    payload = question_bytes(ESTIMATE)
    frames = http2.PREFACE + http2.settings() + b"".join(
        http2.call("/" + PLANNER + "EstimateTraining", 2 * number + 1, payload) for number in range(3))
    count = Options.seconds(20_000, 500)
    with ResidentWatch(server) as resident:
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
                try:
                    plain.sendall(_broken(frames, chooser))
                except OSError:
                    pass  # refused in the middle
        result = run_load(server.address, HEALTH, {}, seconds=1, rate=HEALTHY_RATE)
    table.row(f"{count:,} connections with damaged frames; health afterwards", result, resident)
    check_alive(server)
    check(resident.largest - resident.before < MAX_GROWTH_BYTES, f"memory grew: {resident.cell()}")


DRILLS = {"slow-readers": slow_readers, "half-open": half_open, "idle-connections": idle_connections,
          "descriptors": descriptors, "broken-frames": broken_frames}
