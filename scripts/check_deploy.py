#!/usr/bin/python3
"""Checks deploy/: YAML, what kustomize renders, schemas, promises between the parts, and the alerts' own tests.

usage: check_deploy.py [--write DIRECTORY]    writes what was rendered there, for a person to read
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPLOY = os.path.join(REPOSITORY, "deploy")
OVERLAYS = ("dev", "prod", "gpu-free")
# Beyond drain and grace: the last log lines, and the end of the process.
SPARE_SECONDS = 5


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def rendered(overlay):
    """The objects of an overlay."""
    done = run("kubectl", "kustomize", os.path.join(DEPLOY, "kustomize", "overlays", overlay))
    if done.returncode:
        raise SystemExit(f"kubectl kustomize {overlay}: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout)), done.stdout


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def seconds(text):
    """Of a flag's value: "20s", "1m"."""
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def flags_of(container):
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in container["args"])


def promises(objects):
    """What one part says of another and no schema knows; yields each that is broken."""
    deployment, = of_kind(objects, "Deployment")
    pod = deployment["spec"]["template"]
    container, = pod["spec"]["containers"]
    flags = flags_of(container)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    labels = pod["metadata"]["labels"].items()

    if ports != {"grpc": int(flags["port"]), "http": int(flags["http_port"])}:
        yield f"ports {ports} are not those of the flags"
    end_seconds = seconds(flags["drain_delay"]) + seconds(flags["grace"]) + SPARE_SECONDS
    if pod["spec"]["terminationGracePeriodSeconds"] < end_seconds:
        yield f"the pod is killed before it has drained: {end_seconds} s are needed"
    if container["resources"]["limits"]["memory"] != container["resources"]["requests"]["memory"]:
        yield "memory that is not requested can be taken away"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if container[probe]["httpGet"]["port"] not in ports:
            yield f"{probe} asks a port that does not exist"
    security = {**pod["spec"]["securityContext"], **container["securityContext"]}
    for name, wanted in (("runAsNonRoot", True), ("readOnlyRootFilesystem", True), ("allowPrivilegeEscalation", False),
                         ("capabilities", {"drop": ["ALL"]}), ("seccompProfile", {"type": "RuntimeDefault"})):
        if security.get(name) != wanted:
            yield f"{name} is {security.get(name)}"

    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    if set(mounts) != set(volumes):
        yield f"volumes {sorted(volumes)} are not mounts {sorted(mounts)}"
    maps = {one["metadata"]["name"] for one in of_kind(objects, "ConfigMap")}
    for volume in volumes.values():
        wanted = volume.get("configMap", {"optional": True})
        if not wanted.get("optional") and wanted["name"] not in maps:
            yield f"no ConfigMap {wanted['name']}"
    for name, value in flags.items():
        if value.startswith("/") and not any(value.startswith(path) for path in mounts.values()):
            yield f"--{name}={value} lies in no volume"

    for service in of_kind(objects, "Service"):
        if not service["spec"]["selector"].items() <= labels:
            yield f"Service {service['metadata']['name']} selects no pod"
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in ports:
                yield f"Service {service['metadata']['name']} sends to a port that does not exist"
    for kind, path in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for one in of_kind(objects, kind):
            if not one["spec"][path]["matchLabels"].items() <= labels:
                yield f"{kind} selects no pod"
    monitor, = of_kind(objects, "ServiceMonitor")
    if not any(monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
               for service in of_kind(objects, "Service")):
        yield "ServiceMonitor selects no Service"
    for autoscaler in of_kind(objects, "HorizontalPodAutoscaler"):
        if autoscaler["spec"]["scaleTargetRef"]["name"] != deployment["metadata"]["name"]:
            yield "HorizontalPodAutoscaler scales something else"
    namespaces = {one["metadata"].get("namespace") for one in objects if one["kind"] != "Namespace"}
    if namespaces != {one["metadata"]["name"] for one in of_kind(objects, "Namespace")}:
        yield f"objects in namespaces {namespaces}"


def anchors(path):
    """Of the headings of a Markdown page, as its renderers name them."""
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        headings = re.findall(r"^#+ (.+)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def check_alerts(rule):
    """Every alert has a page of its runbook; promtool's checks and the tests beside it."""
    for group in rule["spec"]["groups"]:
        for alert in group["rules"]:
            if "alert" in alert:
                page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
                if anchor not in anchors(page):
                    yield f"alert {alert['alert']} has no runbook at {page}#{anchor}"
    with tempfile.TemporaryDirectory(prefix="sliceplan-rules-") as directory:
        with open(os.path.join(directory, "rules.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump(rule["spec"], file)
        shutil.copy(os.path.join(DEPLOY, "alerts_test.yaml"), directory)
        promtool = os.path.join(REPOSITORY, "scripts", "promtool.sh")
        for command in (("check", "rules", "rules.yaml"), ("test", "rules", "alerts_test.yaml")):
            done = run(promtool, *command, cwd=directory)
            if done.returncode:
                yield f"promtool {' '.join(command)}: {done.stdout}{done.stderr}"


def violations(write):
    linted = run("yamllint", "--strict", "--config-file", os.path.join(DEPLOY, ".yamllint"), DEPLOY)
    if linted.returncode:
        yield linted.stdout + linted.stderr
    for overlay in OVERLAYS:
        objects, text = rendered(overlay)
        if write:
            with open(os.path.join(write, overlay + ".yaml"), "w", encoding="utf-8") as file:
                file.write(text)
        checked = run("node", os.path.join(DEPLOY, "check_schema.mjs"), input=json.dumps(objects))
        if checked.returncode:
            yield f"{overlay}: {checked.stdout}{checked.stderr}"
        for broken in promises(objects):
            yield f"{overlay}: {broken}"
        if overlay == OVERLAYS[0]:
            yield from check_alerts(of_kind(objects, "PrometheusRule")[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="DIRECTORY")
    subprocess.run([os.path.join(REPOSITORY, "scripts", "npm_tools.sh")], check=True)
    found = list(violations(parser.parse_args().write))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
