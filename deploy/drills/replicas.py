"""Replicas that come and go under load: the client library must show no failed call."""

import signal
import time

from kit import DRAIN, Load, Options, Server, check, end_well, run_load, target_of

REPLICAS = 3
RATE = 300


def _fleet(count=REPLICAS):
    return [Server(*DRAIN) for _ in range(count)]


def _on_the_port_of(server, *flags):
    # The port of a process that was killed is free at once: its listener is gone, and gRPC sets SO_REUSEADDR.
    return Server(f"--port={server.port}", *DRAIN, *flags)


def kill(table):
    """kill -9, and a new process on the same port."""
    servers = _fleet()
    seconds = Options.seconds(30, 6)
    kills = 2 if Options.short else 6
    load = Load(target_of(servers), seconds=seconds, rate=RATE, in_flight=64).wait_until_running()
    for turn in range(kills):
        time.sleep((seconds - 1) / kills / 2)
        servers[turn % REPLICAS].signal(signal.SIGKILL)
        servers[turn % REPLICAS].wait()
        time.sleep((seconds - 1) / kills / 2)
        servers[turn % REPLICAS] = _on_the_port_of(servers[turn % REPLICAS])
    result = load.result()
    table.row(f"{REPLICAS} replicas at {RATE}/s, {kills} times kill -9 and restart", result)
    for server in servers:
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


def kill_while_busy(table):
    """kill -9 of a replica that has many calls in flight."""
    servers = _fleet()
    seconds = Options.seconds(20, 4)
    load = Load(target_of(servers), seconds=seconds, in_flight=96).wait_until_running()
    time.sleep(seconds / 2)
    servers[0].signal(signal.SIGKILL)
    result = load.result()
    table.row(f"{REPLICAS} replicas, 96 calls in flight all the time, kill -9 of one", result)
    for server in servers[1:]:
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


def rolling_restart(table):
    """SIGTERM to each in turn, a new process when the old one has ended."""
    servers = _fleet()
    seconds = Options.seconds(40, 14)
    load = Load(target_of(servers), seconds=seconds, rate=RATE, in_flight=64).wait_until_running()
    for turn, server in enumerate(servers[:2 if Options.short else REPLICAS]):
        check(server.terminate() == 0, "a replica did not drain well")
        servers[turn] = _on_the_port_of(server)
        # For clients to find it before the next one goes, as minReadySeconds does.
        time.sleep(1 if Options.short else 3)
    result = load.result()
    table.row(f"{REPLICAS} replicas at {RATE}/s, each drained and replaced in turn", result)
    for server in servers:
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


def scale_out(table):
    """As many calls as replicas of one worker can take, with 1, 2, 3 of them."""
    for count in (1, 2, 3):
        servers = _fleet(count)
        result = run_load(target_of(servers), seconds=Options.seconds(10, 1), in_flight=32, connections=2)
        table.row(f"{count} replicas, 32 calls in flight: {result['per_second']:,.0f}/s", result)
        for server in servers:
            end_well(server)
        check(result["failed"] == 0, f"failed calls: {result['failures']}")


DRILLS = {"kill": kill, "kill-busy": kill_while_busy, "rolling-restart": rolling_restart, "scale-out": scale_out}
