"""The contract through Debian's python3-grpcio: stubs made by protoc when the tests run, calls, error details."""

import glob
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import atexit

import grpc

from harness import REPOSITORY, Settings

CALL_SECONDS = 120.0
SERVICES = ("sliceplan.v1.AnalysisService", "sliceplan.v1.CatalogService", "sliceplan.v1.PlannerService")


def _generate():
    directory = tempfile.mkdtemp(prefix="sliceplan-e2e-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    proto = os.path.join(REPOSITORY, "proto")
    # Roots one level deeper than usual for packages whose Python names belong to installed packages: grpc, google.
    for root, pattern in ((proto, "sliceplan/v1/*.proto"), (os.path.join(proto, "google"), "rpc/*.proto"),
                          (os.path.join(Settings.grpc_proto, "grpc"), "health/v1/health.proto"),
                          (os.path.join(Settings.grpc_proto, "grpc"), "reflection/v1alpha/reflection.proto")):
        files = sorted(os.path.relpath(path, root) for path in glob.glob(os.path.join(root, pattern)))
        subprocess.run(["protoc", "-I", root, f"--python_out={directory}", f"--grpc_python_out={directory}",
                        f"--plugin=protoc-gen-grpc_python={shutil.which('grpc_python_plugin')}", *files], check=True)
    sys.path.insert(0, directory)


_generated = False


def module(name):
    """A generated module: module("sliceplan.v1.training_pb2")."""
    global _generated
    if not _generated:
        _generate()
        _generated = True
    return importlib.import_module(name)


class Client:
    """Stubs of everything on one connection."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.planner = module("sliceplan.v1.planner_service_pb2_grpc").PlannerServiceStub(self.channel)
        self.analysis = module("sliceplan.v1.analysis_service_pb2_grpc").AnalysisServiceStub(self.channel)
        self.catalog = module("sliceplan.v1.catalog_service_pb2_grpc").CatalogServiceStub(self.channel)
        self.health = module("health.v1.health_pb2_grpc").HealthStub(self.channel)
        self.reflection = module("reflection.v1alpha.reflection_pb2_grpc").ServerReflectionStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def health_status(self, service="", seconds=CALL_SECONDS):
        """Name of the status: "SERVING"."""
        health = module("health.v1.health_pb2")
        reply = self.health.Check(health.HealthCheckRequest(service=service), timeout=seconds, wait_for_ready=True)
        return health.HealthCheckResponse.ServingStatus.Name(reply.status)


class Failure:
    """What a failed call said."""

    def __init__(self, error):
        self.code = error.code()
        self.message = error.details()
        self.details_bytes = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
        self.status = module("rpc.status_pb2").Status.FromString(self.details_bytes)
        self.details = {}
        for packed in self.status.details:
            name = packed.TypeName().rpartition(".")[2]
            detail = getattr(module("rpc.error_details_pb2"), name)()
            assert packed.Unpack(detail)
            assert name not in self.details, f"{name} twice"
            self.details[name] = detail

    def fields(self):
        return [violation.field for violation in self.details["BadRequest"].field_violations]


def failure_of(stub, request):
    """The failure of a call that must fail."""
    try:
        reply = stub(request, timeout=CALL_SECONDS)
    except grpc.RpcError as error:
        return Failure(error)
    raise AssertionError(f"answered: {str(reply)[:500]}")
