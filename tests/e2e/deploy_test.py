#!/usr/bin/python3
"""deploy/ against the server itself: its flags exist, and every metric that alerts and dashboard ask for is scraped."""

import json
import re
import subprocess
import sys
import unittest
import urllib.request

import yaml

import harness
from harness import REPOSITORY, Settings, read
from running_server import RunningServer

PROMQL_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
# What stands in an expression beside metrics: functions, keywords, labels in `by`, units of durations.
NO_METRICS = {"absent", "and", "by", "changes", "clamp_min", "histogram_quantile", "increase", "max", "min", "on", "or",
              "rate", "sum", "time", "unless", "without"}
PROMETHEUS_OWN = {"up"}


def metrics_of(expression):
    """Names of the metrics of an expression of PromQL."""
    text = re.sub(r'"[^"]*"', "", expression)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text)
    text = re.sub(r"\b(by|without|on)\s*\([^)]*\)", " ", text)
    return {name for name in PROMQL_NAME.findall(text) if name not in NO_METRICS}


def help_of_server():
    return subprocess.run([Settings.server, "--help"], capture_output=True, text=True, check=False).stdout


def flags_of_server():
    return set(re.findall(r"^\s+--(\w+) \(", help_of_server(), re.MULTILINE))


class Expressions(unittest.TestCase):
    """What this file takes for a metric."""

    def test_names(self):
        for expression, names in (
                ('sum by (m) (rate(a_total{job="x",code=~"A|B"}[5m])) / b:c_d > 0.8 * 1024', {"a_total", "b:c_d"}),
                ('absent(up{job="x"} == 1)', {"up"}),
                ("histogram_quantile(0.99, sum by (m, le) (rate(h_bucket[5m])))", {"h_bucket"})):
            self.assertEqual(metrics_of(expression), names)


class Manifests(unittest.TestCase):
    """Arguments of the container."""

    def test_every_flag_exists(self):
        flags = flags_of_server()
        self.assertIn("port", flags)
        if "http_port" not in flags or "tls_cert" not in flags:
            self.skipTest("this server has no HTTP port or no TLS yet")
        deployment = yaml.safe_load(read("deploy", "kustomize", "base", "deployment.yaml"))
        arguments = list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])
        for overlay in ("dev", "prod"):
            arguments += [patch["value"] for patch in
                          yaml.safe_load(read("deploy", "kustomize", "overlays", overlay, "flags.yaml"))]
        for argument in arguments:
            self.assertIn(argument.removeprefix("--").partition("=")[0], flags)


class Metrics(unittest.TestCase):
    """One scrape."""

    def scraped(self):
        with RunningServer("--http_port=0") as server:
            record = server.wait_for_log(lambda line: line["message"] == "serving")
            with urllib.request.urlopen(f"http://127.0.0.1:{record['http_port']}/metrics", timeout=30) as reply:
                text = reply.read().decode()
        checked = subprocess.run([f"{REPOSITORY}/scripts/promtool.sh", "check", "metrics"], input=text, text=True,
                                 capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        return set(re.findall(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]", text, re.MULTILINE))

    def test_what_is_asked_for_is_there(self):
        if "http_port" not in flags_of_server():
            self.skipTest("this server has no HTTP port yet")
        known = self.scraped() | PROMETHEUS_OWN
        rules = yaml.safe_load(read("deploy", "kustomize", "base", "prometheusrule.yaml"))["spec"]["groups"]
        known |= {rule["record"] for group in rules for rule in group["rules"] if "record" in rule}
        for rule in (rule for group in rules for rule in group["rules"]):
            with self.subTest(rule.get("alert") or rule["record"]):
                self.assertLessEqual(metrics_of(rule["expr"]), known)
        panels = json.loads(read("deploy", "kustomize", "base", "dashboard.json"))["panels"]
        self.assertGreater(len(panels), 10)
        for panel in panels:
            for target in panel["targets"]:
                with self.subTest(panel["title"]):
                    names = metrics_of(target["expr"])
                    self.assertTrue(names)
                    self.assertLessEqual(names, known)


if __name__ == "__main__":
    harness.main(sys.modules["__main__"])
