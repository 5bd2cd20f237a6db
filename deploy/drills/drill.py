#!/usr/bin/python3
"""Breaks a running Sliceplan on purpose and prints what callers saw.

usage: drill.py [NAME...] [--short] [--scale FACTOR] [--list]    all drills, or the named ones

Servers listen on the loopback interface and are gone at the end. The exit status says whether every promise was kept.
"""

import argparse
import os
import sys
import time
import traceback

import kit
import changes
import clients
import faults
import fuzz
import overload
import replicas

DRILLS = {**overload.DRILLS, **replicas.DRILLS, **clients.DRILLS, **changes.DRILLS, **faults.DRILLS, **fuzz.DRILLS}


def main():
    built = os.path.join(kit.REPOSITORY, "build", "release", "bin")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a drill")
    parser.add_argument("--short", action="store_true", help="seconds instead of minutes, without limits on latency")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full lengths and counts, 0.1 for a tenth")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--server", default=os.path.join(built, "sliceplan-server"))
    parser.add_argument("--load", default=os.path.join(built, "sliceplan-load"))
    arguments = parser.parse_args()
    if arguments.list:
        for name, drill in DRILLS.items():
            print(f"{name:<18} {drill.__doc__}")
        return 0
    unknown = sorted(set(arguments.names) - set(DRILLS))
    if unknown:
        parser.error(f"no such drill: {', '.join(unknown)}; there are {', '.join(DRILLS)}")
    kit.Settings.server, kit.Options.load_program, kit.Options.short = arguments.server, arguments.load, arguments.short
    kit.Options.scale = arguments.scale
    kit.Settings.grpc_proto = "/usr/share/grpc-proto"

    table, failures = kit.Table(), []
    for name in arguments.names or DRILLS:
        table.drill = name
        print(f"==== {name}: {DRILLS[name].__doc__}", flush=True)
        started = time.monotonic()
        try:
            DRILLS[name](table)
        except Exception as error:  # one drill's failure hides no other
            if not isinstance(error, kit.Failed):
                traceback.print_exc()
            failures.append(f"{name}: {error}")
            print(f"  FAILED {error}", flush=True)
        finally:
            kit.Server.kill_all()
        print(f"  {time.monotonic() - started:.1f} s", flush=True)
    table.print()
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
