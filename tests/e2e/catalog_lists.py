"""Every List RPC: pages, filters, and what they refuse."""

import grpc

from cases import ServerCase
import wire

# Method, field of the items, a filter, and the items that it must leave: field and value.
LISTS = (
    ("ListAccelerators", "accelerators", "kind=TPU", lambda item: item.kind, 1),
    ("ListSlices", "slices", 'accelerator="tpu-v5p" AND chip_count=64', lambda item: item.chip_count, 64),
    ("ListPrices", "prices", 'accelerator="tpu-v5p" AND provider=gcp', lambda item: item.accelerator, "tpu-v5p"),
    ("ListModels", "models", 'name:"llama-3"', lambda item: "llama-3" in item.name, True),
)
LARGEST_PAGE = 500


class Lists(ServerCase):
    """Items, tokens, totals."""

    def request(self, method, **fields):
        return getattr(wire.module("sliceplan.v1.catalog_pb2"), method + "Request")(**fields)

    def page(self, method, **fields):
        return getattr(self.client.catalog, method)(self.request(method, **fields), timeout=wire.CALL_SECONDS)

    def all_items(self, method, field, page_size, **fields):
        items, token, versions = [], "", set()
        while True:
            reply = self.page(method, page_size=page_size, page_token=token, **fields)
            page = list(getattr(reply, field))
            self.assertLessEqual(len(page), page_size)
            items += page
            versions.add((reply.total_count, reply.engine_version, reply.catalog_version))
            self.assertEqual(len(versions), 1)
            token = reply.next_page_token
            if not token:
                self.assertEqual(len(items), reply.total_count)
                return items
            self.assertEqual(len(page), page_size)

    def test_pages_hold_every_item_once(self):
        for method, field, *_ in LISTS:
            with self.subTest(method):
                items = self.all_items(method, field, LARGEST_PAGE)
                self.assertGreater(len(items), 20)
                self.assertEqual(self.all_items(method, field, 7), items)
                self.assertEqual(len({item.SerializeToString(deterministic=True) for item in items}), len(items))
                default = self.page(method)
                self.assertEqual(list(getattr(default, field)), items[:50])

    def test_filters(self):
        for method, field, text, value_of, expected in LISTS:
            with self.subTest(method, filter=text):
                everything = self.all_items(method, field, LARGEST_PAGE)
                left = self.all_items(method, field, 3, filter=text)
                self.assertTrue(left)
                self.assertLess(len(left), len(everything))
                self.assertEqual({value_of(item) for item in left}, {expected})

    def test_what_is_known_of_v5p(self):
        # cloud.google.com/tpu/docs/v5p: 459 TFLOP/s bf16, HBM of 2765 GB/s.
        chips = self.all_items("ListAccelerators", "accelerators", 10, filter='id="tpu-v5p"')
        self.assertEqual(len(chips), 1)
        self.assertEqual(chips[0].spec.bf16_flops_per_second, 4.59e14)
        self.assertAlmostEqual(chips[0].spec.hbm_bytes_per_second, 2.765e12, delta=0.05e12)

    def test_refusals_name_the_field(self):
        for method, field, text, *_ in LISTS:
            stub = getattr(self.client.catalog, method)
            token = self.page(method, page_size=1).next_page_token
            for violated, fields in (("page_size", {"page_size": -1}), ("page_token", {"page_token": "nonsense"}),
                                     ("page_token", {"page_token": token, "filter": text}),
                                     ("filter", {"filter": "no_such_field=1"}), ("filter", {"filter": "name=("})):
                with self.subTest(method, **fields):
                    failure = wire.failure_of(stub, self.request(method, **fields))
                    self.assertEqual(failure.code, grpc.StatusCode.INVALID_ARGUMENT)
                    self.assertEqual(failure.fields(), [violated])

    def test_near_names_of_fields(self):
        failure = wire.failure_of(self.client.catalog.ListPrices, self.request("ListPrices", filter="acelerator=x"))
        self.assertIn('"accelerator"', failure.message)
