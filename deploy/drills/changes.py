"""What changes below a running server: its catalog, the clock."""

import os
import shutil
import signal
import tempfile
import time

from kit import HEALTH, Load, Options, ResidentWatch, Server, check, end_well, run_load
from lifetime import OVERLAY

FAKETIME_LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
                      "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1")


def _write_as_configmap(directory, number, price):
    """As the kubelet does: a new directory, and a link to it that is replaced at once."""
    new = os.path.join(directory, f"..{number}")
    os.mkdir(new)
    with open(os.path.join(new, "ours.textproto"), "w", encoding="utf-8") as file:
        file.write(OVERLAY.format(price=price))
    link = os.path.join(directory, "..data")
    os.symlink(f"..{number}", link + "_new")
    os.replace(link + "_new", link)
    name = os.path.join(directory, "ours.textproto")
    if not os.path.lexists(name):
        os.symlink("..data/ours.textproto", name)
    shutil.rmtree(os.path.join(directory, f"..{number - 1}"), ignore_errors=True)


def catalog_reload(table):
    """Good and bad catalogs in turn, SIGHUP after each, under load."""
    reloads = Options.seconds(40, 6)
    with tempfile.TemporaryDirectory(prefix="sliceplan-drill-") as directory:
        _write_as_configmap(directory, 0, "1")
        server = Server(f"--catalog_dir={directory}", "--drain_delay=0s")
        with ResidentWatch(server) as resident:
            load = Load(server.address, seconds=Options.seconds(30, 4), rate=500, max_attempts=1).wait_until_running()
            good = bad = 0
            for number in range(1, reloads + 1):
                is_good = number % 2 == 1
                # Each price only once, so that each good catalog has a version of its own.
                _write_as_configmap(directory, number, f"{1 + number / 100}" if is_good else f"-{number}")
                server.signal(signal.SIGHUP)
                if is_good:
                    good += 1
                    server.wait_for_log(lambda line, count=good: _count(server, "catalog read again") >= count)
                else:
                    bad += 1
                    server.wait_for_log(lambda line, count=bad: _count(server, severity="ERROR") >= count)
                time.sleep(0.1 if Options.short else 0.5)
            result = load.result()
        table.row(f"500/s; {good} good and {bad} bad catalogs, SIGHUP each", result, resident)
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


def _count(server, message=None, severity=None):
    # Called by wait_for_log, which holds the lock of the lines.
    wanted = f'"message":"{message}"' if message else f'"severity":"{severity}"'
    return sum(wanted in line.replace('": "', '":"') for line in server.log_lines)


def clock_jump(table):
    """The wall clock jumps an hour ahead and back (libfaketime); deadlines and health must not notice."""
    library = next((path for path in FAKETIME_LIBRARIES if os.path.exists(path)), None)
    if library is None:
        table.row("not run: needs Debian's package libfaketime")
        return
    with tempfile.TemporaryDirectory(prefix="sliceplan-drill-") as directory:
        stamp = os.path.join(directory, "faketime")

        def jump(offset):
            with open(stamp + ".new", "w", encoding="ascii") as file:
                file.write(offset)
            os.replace(stamp + ".new", stamp)

        jump("+0")
        os.environ.update(LD_PRELOAD=library, FAKETIME_TIMESTAMP_FILE=stamp, FAKETIME_NO_CACHE="1",
                          FAKETIME_DONT_FAKE_MONOTONIC="1")
        try:
            server = Server("--drain_delay=0s")
        finally:
            for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"):
                del os.environ[name]
        load = Load(server.address, seconds=Options.seconds(20, 4), rate=200, max_attempts=1).wait_until_running()
        for offset in ("+3600", "+0", "-3600", "+0"):
            time.sleep(0.7 if Options.short else 4)
            jump(offset)
        result = load.result()
        health = run_load(server.address, HEALTH, {}, seconds=0.5, rate=20)
        table.row("200/s while the clock jumps +1 h, back, -1 h, back", result)
        check(health["failed"] == 0, f"health: {health['failures']}")
        end_well(server)
    check(result["failed"] == 0, f"failed calls: {result['failures']} {result['first_failure']}")


DRILLS = {"catalog-reload": catalog_reload, "clock-jump": clock_jump}
