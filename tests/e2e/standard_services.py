"""Health and reflection."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool

from cases import ServerCase
import wire

HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"


class Standard(ServerCase):
    """What tools expect of any gRPC server."""

    def reflect(self, *requests):
        return list(self.client.reflection.ServerReflectionInfo(iter(requests), timeout=wire.CALL_SECONDS))

    def test_health(self):
        for service in ("", *wire.SERVICES):
            self.assertEqual(self.client.health_status(service), "SERVING", service)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.health_status("no.such.Service")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_reflection_describes_every_listed_service(self):
        request = wire.module("reflection.v1alpha.reflection_pb2").ServerReflectionRequest
        listed = [service.name
                  for service in self.reflect(request(list_services="*"))[0].list_services_response.service]
        self.assertEqual(sorted(listed), sorted((*wire.SERVICES, HEALTH, REFLECTION)))

        files = {}

        def keep(replies):
            for reply in replies:
                self.assertFalse(reply.HasField("error_response"), reply)
                for encoded in reply.file_descriptor_response.file_descriptor_proto:
                    file = descriptor_pb2.FileDescriptorProto.FromString(encoded)
                    files[file.name] = file

        keep(self.reflect(*[request(file_containing_symbol=name) for name in listed]))
        while True:
            missing = {name for file in files.values() for name in file.dependency} - set(files)
            if not missing:
                break
            keep(self.reflect(*[request(file_by_filename=name) for name in sorted(missing)]))

        pool = descriptor_pool.DescriptorPool()
        added = set()

        def add(name):
            if name not in added:
                added.add(name)
                for dependency in files[name].dependency:
                    add(dependency)
                pool.Add(files[name])

        for name in files:
            add(name)
        methods = {name: [method.name for method in pool.FindServiceByName(name).methods] for name in listed}
        self.assertTrue(all(methods.values()), methods)
        self.assertEqual(methods["sliceplan.v1.PlannerService"],
                         ["EstimateTraining", "EstimateServing", "ProposeSharding"])
        self.assertEqual(methods[HEALTH], ["Check", "Watch"])


class Watches(ServerCase):
    """What the log says of health watches."""

    flags = ("--drain_delay=0s", "--log_level=debug")

    def test_a_client_that_stops_watching_is_no_error(self):
        health = wire.module("health.v1.health_pb2")
        watch = self.client.health.Watch(health.HealthCheckRequest(), timeout=wire.CALL_SECONDS)
        self.assertEqual(next(watch).status, health.HealthCheckResponse.SERVING)
        watch.cancel()
        record = self.server.wait_for_log(lambda line: line.get("method") == HEALTH + "/Watch")
        self.assertEqual((record["code"], record["severity"]), ("CANCELLED", "DEBUG"))
