#!/usr/bin/python3
"""The server over TCP, asked by another implementation of gRPC."""

import answers
import catalog_lists
import failures
import http_calls
import http_limits
import lifetime
import serving
import sharding
import standard_services

import harness

if __name__ == "__main__":
    harness.main(answers, catalog_lists, failures, http_calls, http_limits, serving, sharding, standard_services,
                 lifetime)
