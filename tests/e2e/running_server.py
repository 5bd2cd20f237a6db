"""A server process of a test: a free port, its log lines, an end whatever happens."""

import json
import signal
import subprocess
import threading
import time

from harness import Settings

START_SECONDS = 30.0  # generous: machines that run tests are busy
END_SECONDS = 60.0


class RunningServer:
    """Use as a context manager: the process is killed at the end when it still runs."""

    def __init__(self, *flags):
        self.started = time.monotonic()
        self.process = subprocess.Popen([Settings.server, "--port=0", *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, encoding="utf-8")
        self.log_lines = []
        self._log_changed = threading.Condition()
        self._log_ended = False
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        watchdog = threading.Timer(START_SECONDS, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        with_http = line and any(flag.startswith("--http_port") for flag in flags)
        http_line = self.process.stdout.readline() if with_http else ""
        watchdog.cancel()
        self.port_seconds = time.monotonic() - self.started
        if not line.startswith("port="):
            self.kill()
            raise AssertionError(f"the server did not start: {line!r}, {self.log_lines}")
        self.port = int(line[len("port="):])
        self.address = f"127.0.0.1:{self.port}"
        self.http_port = int(http_line[len("http_port="):]) if with_http else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _read_log(self):
        for line in self.process.stderr:
            with self._log_changed:
                self.log_lines.append(line.rstrip("\n"))
                self._log_changed.notify_all()
        with self._log_changed:
            self._log_ended = True
            self._log_changed.notify_all()

    def log_records(self):
        """Every line so far; fails when one is no JSON object."""
        with self._log_changed:
            lines = list(self.log_lines)
        records = [json.loads(line) for line in lines]
        for line, record in zip(lines, records):
            if not isinstance(record, dict):
                raise AssertionError(f"no JSON object: {line}")
        return records

    def wait_for_log(self, wanted, seconds=20.0):
        """The first record, past or to come, for which wanted(record) holds."""
        end = time.monotonic() + seconds
        seen = 0
        with self._log_changed:
            while True:
                for line in self.log_lines[seen:]:
                    record = json.loads(line)
                    if wanted(record):
                        return record
                seen = len(self.log_lines)
                left = end - time.monotonic()
                if left <= 0 or self._log_ended:
                    raise AssertionError("no such log line in:\n" + "\n".join(self.log_lines))
                self._log_changed.wait(left)

    def signal(self, number):
        self.process.send_signal(number)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def terminate(self):
        """Ends it as an operator does; the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        status = self.process.wait(END_SECONDS)
        self._log_reader.join(END_SECONDS)
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_SECONDS)
        self._log_reader.join(END_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
