#!/usr/bin/python3
"""check_arrows.py must fail on each bad tree below, for the reason named, and pass on the good one."""

import os
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(REPOSITORY, "scripts/check_arrows.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
import check_arrows  # noqa: E402

# Spelt in two pieces: the check reads this file as well.
HOME = "/ho" + "me/someone"

with open(os.path.join(REPOSITORY, "docs/architecture.md"), encoding="utf-8") as file:
    ARCHITECTURE = file.read()

GOOD = {
    "docs/architecture.md": ARCHITECTURE,
    "server/hardware/slice.h": "#include <string>\n#include \"absl/strings/string_view.h\"\n",
    "server/roofline/bound.h": "#include \"server/hardware/slice.h\"\n",
    "server/transformer/model.cc":
        "// Like toy-7b, but larger.\n#include \"nlohmann/json.hpp\"\n#include \"server/roofline/bound.h\"\n"
        "const char* kType = \"toy\";\nconst char* kKey = \"deep_x1\";\nchar c = '\"';  // x1 \"toy-7b\"\n",
    "server/transformer/hugging_face/import.cc": "bool x = model_type == \"toy-7b\";\n",
    "server/planner/job.h": "#include \"server/transformer/model.h\"\n/* #include \"server/rpc/server.h\" */\n",
    "server/catalog/data/chips.textproto":
        "accelerators {\n  id: \"acme-x1\"\n  aliases: \"X1\"\n  aliases: [\"acme1\", \"x-one\"]\n}\n",
    "server/catalog/data/models.textproto": "models {\n  id: \"toy-7b\"\n}\n",
    "server/catalog/catalog.cc":
        "#include \"google/protobuf/text_format.h\"\n#include \"sliceplan/catalog/v1/catalog.pb.h\"\n"
        "#include \"server/planner/job.h\"\nconst char* kId = \"acme-x1\";\n",
    "server/rpc/server.cc":
        "#include <grpcpp/grpcpp.h>\n#include \"sliceplan/v1/planner_service.grpc.pb.h\"\n"
        "#include \"server/catalog/catalog.h\"\n",
    "server/main.cc": "#include \"server/rpc/server.h\"\n",
    "client/sliceplan/client.h": "#include \"sliceplan/v1/planner_service.grpc.pb.h\"\n",
    "client/cli/main.cc": "#include \"client/sliceplan/client.h\"\n#include \"server/rpc/server.h\"\n",
    "tests/rpc/server_test.cc": "#include \"server/hardware/slice.h\"\n",
    "README.md": "See https://example.org/home/page, ~/work/x and the directory build/work/y.\n",
    "tools/package-lock.json": "{\"packages\": {\"a\": {\"version\": \"1.0.0\"}}}\n",
    "build/release/generated.h": HOME + "\n",
}

# What is wrong, the file with the mistake, its text, and what the complaint must say.
BAD = (
    ("room above", "server/hardware/slice.h", "#include \"server/roofline/bound.h\"\n",
     "server/hardware/slice.h:1: server/hardware may not include server/roofline/bound.h"),
    ("room above, two steps", "server/roofline/bound.h", "\n\n#include <server/planner/job.h>\n",
     "server/roofline/bound.h:3: server/roofline may not include server/planner/job.h"),
    ("engine includes the server", "server/planner/job.h", "#include \"server/rpc/server.h\"\n",
     "server/planner may not include server/rpc/server.h"),
    ("engine includes the catalog", "server/planner/job.h", "#include \"server/catalog/catalog.h\"\n",
     "server/planner may not include server/catalog/catalog.h"),
    ("catalog includes the server", "server/catalog/catalog.cc", "#include \"server/rpc/server.h\"\n",
     "server/catalog may not include server/rpc/server.h"),
    ("engine includes gRPC", "server/planner/job.h", "#include <grpcpp/grpcpp.h>\n",
     "may not include grpcpp/grpcpp.h (grpc)"),
    ("engine includes gRPC's C core", "server/hardware/slice.h", "#include <grpc/grpc.h>\n",
     "may not include grpc/grpc.h (grpc)"),
    ("engine includes protobuf", "server/transformer/model.cc", "  #  include <google/protobuf/message.h>\n",
     "may not include google/protobuf/message.h (protobuf)"),
    ("engine includes a generated header", "server/planner/job.h", "#include \"sliceplan/v1/planner.pb.h\"\n",
     "may not include sliceplan/v1/planner.pb.h (sliceplan/v1)"),
    ("engine includes the catalog's generated header", "server/hardware/slice.h",
     "#include \"proto/sliceplan/catalog/v1/catalog.pb.h\"\n", "(sliceplan/catalog/v1)"),
    ("catalog includes the API", "server/catalog/catalog.cc", "#include \"sliceplan/v1/catalog.pb.h\"\n",
     "may not include sliceplan/v1/catalog.pb.h (sliceplan/v1)"),
    ("catalog includes gRPC", "server/catalog/catalog.cc", "#include <grpcpp/server.h>\n", "(grpc)"),
    ("server includes the catalog's schema", "server/rpc/server.cc",
     "#include \"sliceplan/catalog/v1/catalog.pb.h\"\n", "(sliceplan/catalog/v1)"),
    ("client includes the server", "client/sliceplan/client.h", "#include \"server/rpc/server.h\"\n",
     "client/sliceplan may not include server/rpc/server.h"),
    ("client includes the engine", "client/sliceplan/client.h", "#include \"server/hardware/slice.h\"\n",
     "client/sliceplan may not include server/hardware/slice.h"),
    ("command includes the engine", "client/cli/main.cc", "#include \"server/planner/job.h\"\n",
     "client/cli may not include server/planner/job.h"),
    ("server includes tests", "server/rpc/server.cc", "#include \"tests/rpc/helper.h\"\n",
     "may not include tests/rpc/helper.h"),
    ("include relative to the file", "server/roofline/bound.h", "#include \"../planner/job.h\"\n",
     "include paths start at the repository's root"),
    ("include beside the file", "server/roofline/bound.h", "#include \"collective.h\"\n",
     "include paths start at the repository's root"),
    ("include of a macro", "server/roofline/bound.h", "#include HEADER\n", "cannot tell what this includes"),
    ("include after a comment that ends", "server/hardware/slice.h", "/* a\n*/\n#include \"server/rpc/server.h\"\n",
     "server/hardware/slice.h:3: server/hardware may not include"),
    ("file outside the rooms", "server/misc/helper.cc", "", "server/misc/helper.cc:1: lies in no room"),
    ("chip by id", "server/planner/job.h", "bool x = id == \"acme-x1\";\n", "server/planner/job.h:1: the engine knows no names"),
    ("chip by alias, in a sentence, other case", "server/hardware/slice.h", "\nauto e = \"only on a x1 slice\";\n",
     "server/hardware/slice.h:2: the engine knows no names"),
    ("chip by an alias of a list", "server/roofline/bound.h", "auto e = \"X-One\";\n", "catalog's: x-one"),
    ("model by id", "server/transformer/model.cc", "auto e = f('a', \"Toy-7B\");\n", "catalog's: toy-7b"),
    ("importer includes gRPC", "server/transformer/hugging_face/import.cc", "#include <grpcpp/grpcpp.h>\n", "(grpc)"),
    ("chip in a raw string", "server/transformer/model.cc", "auto e = R\"x(a \" acme1 )x\";\n", "catalog's: acme1"),
    ("chip after an escaped quote", "server/transformer/model.cc", "auto e = \"\\\"acme1\";\n", "catalog's: acme1"),
    ("path of a machine in code", "server/rpc/server.cc", f"auto p = \"{HOME}/x\";\n", "a path of somebody's machine"),
    ("path of a machine in a page", "README.md", f"Run it in {HOME}/project.\n", "README.md:1: a path of somebody's"),
    ("registry in a lock file", "tools/package-lock.json", "{\"resolved\": \"https://packages.example.org/a\"}\n",
     "names a registry"),
    ("no table", "docs/architecture.md", "# Architecture\n", "no table of rooms"),
)


def write(root, tree):
    for path, text in tree.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as out:
            out.write(text)


class CheckArrows(unittest.TestCase):

    def violations(self, tree):
        with tempfile.TemporaryDirectory() as root:
            write(root, tree)
            return list(check_arrows.violations(root))

    def test_good_tree_passes(self):
        self.assertEqual(self.violations(GOOD), [])

    def test_bad_trees_fail(self):
        for name, path, text, complaint in BAD:
            with self.subTest(name):
                found = self.violations(GOOD | {path: text})
                self.assertEqual(len(found), 1, found)
                self.assertIn(complaint, found[0])

    def test_data_without_names_fails(self):
        found = self.violations(GOOD | {path: "# empty\n" for path in GOOD if path.endswith(".textproto")})
        self.assertEqual(len(found), 1, found)
        self.assertIn("no names found in the catalog's data", found[0])

    def test_status_and_output_of_the_command(self):
        for path, text, status in (("server/main.cc", "", 0), ("server/misc/helper.cc", "", 1)):
            with tempfile.TemporaryDirectory() as root:
                write(root, GOOD | {path: text})
                result = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, status)
            self.assertEqual(result.stdout != "", status != 0)
            self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
