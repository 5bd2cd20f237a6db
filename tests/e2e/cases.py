"""A class of cases that share one server."""

import unittest

from google.protobuf import json_format

import wire
from running_server import RunningServer


class ServerCase(unittest.TestCase):
    """cls.server and cls.client; the server must have logged JSON objects only and must end with status 0."""

    flags = ("--drain_delay=0s",)

    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer(*cls.flags)
        cls.addClassCleanup(cls.server.kill)
        cls.client = wire.Client(cls.server.address)
        cls.addClassCleanup(cls.client.channel.close)

    @classmethod
    def tearDownClass(cls):
        cls.client.channel.close()
        status = cls.server.terminate()
        if status != 0:
            raise AssertionError(f"exit status {status}: " + "\n".join(cls.server.log_lines[-20:]))
        cls.server.log_records()

    def training(self, question):
        request = training_request(question)
        return self.client.planner.EstimateTraining(request, timeout=wire.CALL_SECONDS).estimate

    def describe(self, **fields):
        request = wire.module("sliceplan.v1.model_description_pb2").DescribeModelRequest(**fields)
        return self.client.analysis.DescribeModel(request, timeout=wire.CALL_SECONDS)


def training_request(question):
    """EstimateTrainingRequest of a question in JSON."""
    return json_format.ParseDict(question, wire.module("sliceplan.v1.training_pb2").EstimateTrainingRequest())
