#!/usr/bin/python3
"""Keeps the arrows of docs/architecture.md true. Prints every violation and fails when there is one.

1. An include of server/** or client/** that the table "Arrows" does not allow: another room above, gRPC, protobuf, a
   generated header; an include that does not start at the repository's root; a file outside every room of the table.
2. A string in the engine rooms that names an accelerator or a model of the catalog.
3. An absolute path of somebody's machine, or a registry's address in a lock file, anywhere in the repository.

usage: check_arrows.py [REPOSITORY]
"""

import os
import re
import sys

# Rooms whose strings may name no record of the catalog.
ENGINE_ROOMS = ("server/hardware", "server/roofline", "server/transformer", "server/planner")
# The importer's strings are the vocabulary of the format that it reads, model types among them.
IMPORTER = "server/transformer/hugging_face/"
# Directories that are not ours.
SKIPPED_DIRECTORIES = {".git", "build", "node_modules", "__pycache__"}

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", re.MULTILINE)
CODE_TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)"""
    r"""|(?P<raw>R"(?P<delimiter>[^()\\\s]*)\((?P<raw_text>.*?)\)(?P=delimiter)")"""
    r"""|(?P<string>"(?P<text>(?:[^"\\\n]|\\.)*)")"""
    r"""|(?P<char>'(?:[^'\\\n]|\\.)+')""",
    re.DOTALL | re.VERBOSE)
CATALOG_NAME = re.compile(r"^\s*(?:id|aliases):\s*(.*)$", re.MULTILINE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
MACHINE_PATH = re.compile(r"(?<![\w.:/~$}-])/(?:work|root|home|Users)/[\w.-]+")
RESOLVED = re.compile(r'"resolved"\s*:\s*"(?:https?:)')


def files(root):
    """Paths of all files of the repository, relative to it."""
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(d for d in subdirectories if d not in SKIPPED_DIRECTORIES)
        for name in sorted(names):
            yield os.path.relpath(os.path.join(directory, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def read_rules(root):
    """The table: room -> (rooms that it may include, outside families that it may include)."""
    rules = {}
    for line in read(root, "docs/architecture.md").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            names = [re.findall(r"`([^`]+)`", cell) for cell in cells]
            rules[names[0][0]] = (set(names[1]), set(names[2]))
    return rules


def room_of(rules, path):
    """The longest room of the table that the path lies in, or None."""
    rooms = [room for room in rules if path == room or path.startswith(room + "/")]
    return max(rooms, key=len, default=None)


def outside_family(included):
    """What a header that is not ours belongs to, when the table has a say: 'grpc', 'protobuf', or a proto package."""
    path = included[len("proto/"):] if included.startswith("proto/") else included
    if path.endswith((".pb.h", ".pb.cc")):
        package = os.path.dirname(path)
        return "protobuf" if package == "google/protobuf" else package
    if path.startswith(("google/protobuf/", "upb/")):
        return "protobuf"
    if path.startswith(("grpc/", "grpcpp/", "grpc++/", "grpc_", "src/core/", "src/cpp/")):
        return "grpc"
    return None


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_includes(rules, path, text):
    room = room_of(rules, path)
    if room is None:
        yield f"{path}:1: lies in no room of docs/architecture.md"
        return
    rooms, outside = rules[room]
    # Comments go, line breaks stay.
    code = CODE_TOKEN.sub(lambda m: re.sub(r"[^\n]", "", m[0]) if m["comment"] else m[0], text)
    for match in INCLUDE.finditer(code):
        where = f"{path}:{line_of(code, match.start())}"
        target = re.fullmatch(r'"([^"]+)"|<([^>]+)>', match[1])
        if not target:
            yield f"{where}: cannot tell what this includes: {match[1]}"
            continue
        quoted, included = bool(target[1]), target[1] or target[2]
        parts = included.split("/")
        if ".." in parts or "." in parts or (quoted and len(parts) == 1):
            yield f"{where}: include paths start at the repository's root, not at the file: {included}"
        elif parts[0] in ("server", "client", "tests"):
            other = room_of(rules, included)
            if other is None or (other != room and other not in rooms):
                yield f"{where}: {room} may not include {included}"
        else:
            family = outside_family(included)
            if family is not None and family not in outside:
                yield f"{where}: {room} may not include {included} ({family})"


def catalog_names(root):
    """Ids and aliases of the catalog's records, lower case."""
    names = set()
    for path in files(os.path.join(root, "server/catalog/data")):
        if path.endswith((".textproto", ".txtpb")):
            for match in CATALOG_NAME.finditer(read(root, os.path.join("server/catalog/data", path))):
                names.update(name.lower() for name in QUOTED.findall(match[1]))
    return names


def check_strings(names_pattern, path, text):
    for match in CODE_TOKEN.finditer(text):
        literal = match["text"] if match["string"] else match["raw_text"] if match["raw"] else None
        line_start = text.rfind("\n", 0, match.start()) + 1
        if literal is None or INCLUDE.match(text, line_start):
            continue
        named = names_pattern.search(literal.lower())
        if named:
            yield (f"{path}:{line_of(text, match.start())}: the engine knows no names, but this string has one of the"
                   f" catalog's: {named[0]}")


def check_machine_paths(path, text):
    for match in MACHINE_PATH.finditer(text):
        yield f"{path}:{line_of(text, match.start())}: a path of somebody's machine: {match[0]}"
    if os.path.basename(path) == "package-lock.json" and RESOLVED.search(text):
        yield f"{path}:1: names a registry: strip \"resolved\" (npm: omit-lockfile-registry-resolved)"


def violations(root):
    rules = read_rules(root)
    if not rules:
        yield "docs/architecture.md:1: no table of rooms found"
        return
    names = catalog_names(root)
    if os.path.isdir(os.path.join(root, "server/catalog/data")) and not names:
        yield "server/catalog/data:1: no names found in the catalog's data"
    names_pattern = re.compile(
        r"(?<![a-z0-9_])(?:" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?![a-z0-9_])")
    for path in files(root):
        text = read(root, path)
        yield from check_machine_paths(path, text)
        if path.startswith(("server/", "client/")) and path.endswith((".h", ".cc")):
            yield from check_includes(rules, path, text)
            engine = path.startswith(tuple(room + "/" for room in ENGINE_ROOMS)) and not path.startswith(IMPORTER)
            if names and engine:
                yield from check_strings(names_pattern, path, text)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = list(violations(root))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
