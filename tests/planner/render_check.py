"""Renderings against the parsers of what they are written for: render_check.py PLANNER_RENDER_TESTS.

Runs the test program, which writes its samples and their facts, and then
  python: compiles and executes them with stand-ins for JAX that check what jax.sharding checks;
  yaml:   loads them with PyYAML, strictly (no key twice), and follows the numbers;
  shell:  runs them in bash with the command replaced, and gives its words to argparse parsers with the real tools'
          option names.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest

import yaml

DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")
LABEL_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")

# Keys of MaxText's src/maxtext/configs/base.yml, commit 000b810, with the types that it takes.
MAXTEXT_KEYS = {
    "base_config": str, "run_name": str, "model_name": str, "max_target_length": int,
    "per_device_batch_size": (int, float), "gradient_accumulation_steps": int, "steps": int,
    "shard_optimizer_over_data": bool, "remat_policy": str, "num_layers_per_pipeline_stage": int,
    "num_pipeline_repeats": int, "num_pipeline_microbatches": int, "scan_layers": bool, "dtype": str,
    "quantization": str, "use_qwix_quantization": bool, "weight_dtype": str, "grad_dtype": str, "mu_dtype": str,
    "opt_type": str, "optimizer_memory_host_offload": bool, "megablox": bool, "sparse_matmul": bool,
    "capacity_factor": (int, float), "attention": str, "num_vocab_tiling": int,
}
MAXTEXT_AXES = ("data", "fsdp", "tensor", "context", "expert", "pipeline")
MAXTEXT_POLICIES = {
    "minimal_with_context", "minimal", "save_dot_with_context_except_mlp", "save_dot_except_mlpwi",
    "save_dot_except_mlp", "save_qkv_proj", "qkv_proj_offloaded", "custom", "minimal_offloaded", "save_out_proj",
    "full",
}
MAXTEXT_TENSORS = {
    "decoder_layer_input", "context", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "moe_mlpwi_0", "moe_mlpwi_1",
    "moe_mlpwo", "query_proj", "key_proj", "value_proj", "out_proj", "query_wa_proj", "kv_wa_proj",
}


class StrictLoader(yaml.SafeLoader):
  """Refuses a key that stands twice."""

  def construct_mapping(self, node, deep=False):
    keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key stands twice: {keys}"
    return super().construct_mapping(node, deep=deep)


def documents(text):
  return list(yaml.load_all(text, Loader=StrictLoader))


class Spec(tuple):
  """As jax.sharding.PartitionSpec: an axis splits one dimension only."""

  def __new__(cls, *dimensions):
    axes = []
    for dimension in dimensions:
      assert dimension is None or isinstance(dimension, (str, tuple)), dimension
      axes += [] if dimension is None else [dimension] if isinstance(dimension, str) else list(dimension)
    assert len(axes) == len(set(axes)), f"an axis splits two dimensions: {dimensions}"
    self = super().__new__(cls, dimensions)
    self.axes = set(axes)
    return self


class FakeMesh:

  def __init__(self, shape, axes):
    assert len(shape) == len(axes) == len(set(axes)), (shape, axes)
    self.shape = dict(zip(axes, shape))


def fake_jax(calls):
  """Modules with what the renderings use, and the signatures that JAX documents."""

  def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    calls["slices"] = 1
    return mesh_shape

  def create_hybrid_device_mesh(mesh_shape, dcn_mesh_shape, devices=None, *, process_is_granule=False,
                                should_sort_granules_by_key=True, allow_split_physical_axes=False):
    assert len(mesh_shape) == len(dcn_mesh_shape)
    calls["slices"] = product(dcn_mesh_shape)
    return tuple(ici * dcn for ici, dcn in zip(mesh_shape, dcn_mesh_shape))

  def save_only_these_names(*names):
    return names

  def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded, offload_src,
                                        offload_dst):
    assert not set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
    return (offload_src, offload_dst)

  mesh_utils = types.ModuleType("jax.experimental.mesh_utils")
  mesh_utils.create_device_mesh = create_device_mesh
  mesh_utils.create_hybrid_device_mesh = create_hybrid_device_mesh
  sharding = types.ModuleType("jax.sharding")
  sharding.Mesh, sharding.PartitionSpec = FakeMesh, Spec
  experimental = types.ModuleType("jax.experimental")
  experimental.mesh_utils = mesh_utils
  jax = types.ModuleType("jax")
  jax.experimental, jax.sharding = experimental, sharding
  jax.checkpoint_policies = types.SimpleNamespace(
      everything_saveable=object(), nothing_saveable=object(), save_only_these_names=save_only_these_names,
      save_and_offload_only_these_names=save_and_offload_only_these_names)
  return {"jax": jax, "jax.sharding": sharding, "jax.experimental": experimental,
          "jax.experimental.mesh_utils": mesh_utils}


def product(numbers):
  total = 1
  for number in numbers:
    total *= number
  return total


class Parser(argparse.ArgumentParser):

  def __init__(self, *args, **kwargs):
    super().__init__(*args, allow_abbrev=False, **kwargs)

  def error(self, message):
    raise AssertionError(message)


def megatron_parser():
  """Names, types and choices of megatron/training/arguments.py, NVIDIA/Megatron-LM commit 000c4ac."""
  parser = Parser()
  for name in ("tensor-model-parallel-size", "pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank",
               "context-parallel-size", "expert-model-parallel-size", "expert-tensor-parallel-size",
               "micro-batch-size", "global-batch-size", "seq-length", "max-position-embeddings", "train-samples",
               "recompute-num-layers", "num-distributed-optimizer-instances"):
    parser.add_argument("--" + name, type=int)
  for name in ("sequence-parallel", "use-distributed-optimizer", "use-megatron-fsdp", "overlap-grad-reduce",
               "overlap-param-gather", "bf16", "fp16", "grad-reduce-in-bf16", "accumulate-allreduce-grads-in-fp32",
               "optimizer-cpu-offload", "use-precision-aware-optimizer", "use-tp-pp-dp-mapping", "moe-grouped-gemm",
               "no-gradient-accumulation-fusion"):
    parser.add_argument("--" + name, action="store_true")
  parser.add_argument("--pipeline-model-parallel-layout")
  parser.add_argument("--data-parallel-sharding-strategy",
                      choices=["no_shard", "optim", "optim_grads", "optim_grads_params"])
  parser.add_argument("--ckpt-format", choices=["torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor"])
  parser.add_argument("--recompute-granularity", choices=["full", "selective"])
  parser.add_argument("--recompute-method", choices=["uniform", "block"])
  parser.add_argument("--recompute-modules", nargs="*",
                      choices=["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"])
  parser.add_argument("--fp8-format", choices=["e4m3", "hybrid"])
  parser.add_argument("--fp4-format", choices=["e2m1"])
  parser.add_argument("--optimizer", choices=["adam", "sgd", "muon", "dist_muon"])
  parser.add_argument("--exp-avg-dtype", choices=["fp32", "fp16", "bf16", "fp8"])
  parser.add_argument("--exp-avg-sq-dtype", choices=["fp32", "fp16", "bf16", "fp8"])
  parser.add_argument("--cp-comm-type", nargs="+")
  parser.add_argument("--moe-token-dispatcher-type", choices=["allgather", "alltoall", "flex"])
  parser.add_argument("--moe-expert-capacity-factor", type=float)
  parser.add_argument("--attention-backend", choices=["flash", "fused", "unfused", "local", "auto"])
  return parser


def layout_layers(layout):
  """Layers of each chunk of a --pipeline-model-parallel-layout: E, t, m and L, "x*n" repeats a character."""
  layout = re.sub(r"(.)\*(\d+)", lambda match: match[1] * int(match[2]), layout)
  assert set(layout) <= set("Etm|L") and layout[0] == "E" and layout[-1] == "L", layout
  return [chunk.count("t") for chunk in layout.split("|")]


def xpk_parser():
  """Options of src/xpk/parser/workload.py and common.py."""
  parser = Parser()
  parser.add_argument("words", nargs=2)
  for name in ("workload", "cluster", "docker-image", "command"):
    parser.add_argument("--" + name, required=True)
  device = parser.add_mutually_exclusive_group(required=True)
  device.add_argument("--tpu-type")
  device.add_argument("--device-type")
  parser.add_argument("--num-slices", type=int)
  parser.add_argument("--num-nodes", type=int)
  parser.add_argument("--zone")
  capacity = parser.add_mutually_exclusive_group(required=True)
  capacity.add_argument("--reservation")
  for name in ("on-demand", "spot", "flex"):
    capacity.add_argument("--" + name, action="store_true")
  return parser


def vllm_parser():
  """Engine arguments of `vllm serve` as its documentation lists them, 0.8 to 0.11, and --additional_config of plug-ins."""
  parser = Parser()
  parser.add_argument("model")
  for name in ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "max-model-len",
               "max-num-seqs", "max-num-batched-tokens"):
    parser.add_argument("--" + name, type=int)
  parser.add_argument("--block-size", type=int, choices=[1, 8, 16, 32, 64, 128])
  parser.add_argument("--gpu-memory-utilization", type=float)
  parser.add_argument("--dtype", choices=["auto", "half", "float16", "bfloat16", "float", "float32"])
  parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"])
  parser.add_argument("--quantization", choices=["awq", "bitsandbytes", "compressed-tensors", "experts_int8", "fp8",
                                                 "gptq", "gguf", "modelopt", "tpu_int8"])
  parser.add_argument("--distributed-executor-backend", choices=["ray", "mp", "uni", "external_launcher"])
  for name in ("enable-chunked-prefill", "enable-prefix-caching", "enable-expert-parallel",
               "disable-hybrid-kv-cache-manager"):
    parser.add_argument("--" + name, action=argparse.BooleanOptionalAction)
  for name in ("--speculative-config", "--kv-transfer-config", "--additional_config"):
    parser.add_argument(name, type=json.loads)
  return parser


def gcloud_parser():
  """Options of gcloud (alpha) compute tpus queued-resources create."""
  parser = Parser()
  parser.add_argument("words", nargs="+")
  node = parser.add_mutually_exclusive_group(required=True)
  node.add_argument("--node-id")
  node.add_argument("--node-count", type=int)
  parser.add_argument("--node-prefix")
  for name in ("accelerator-type", "zone", "runtime-version"):
    parser.add_argument("--" + name, required=True)
  for name in ("spot", "reserved"):
    parser.add_argument("--" + name, action="store_true")
  parser.add_argument("--provisioning-model", choices=["standard", "spot", "flex-start", "reservation-bound"])
  parser.add_argument("--max-run-duration")
  parser.add_argument("--reservation")
  return parser


class RenderingsTest(unittest.TestCase):
  program = None

  @classmethod
  def setUpClass(cls):
    cls.directory = tempfile.TemporaryDirectory()
    subprocess.run([cls.program, "--gtest_brief=1", "--gtest_filter=RenderSamples.*"], check=True,
                   env=dict(os.environ, SLICEPLAN_RENDER_SAMPLES_DIR=cls.directory.name))
    cls.facts = {}
    for name in os.listdir(cls.directory.name):
      if name.endswith(".facts"):
        with open(os.path.join(cls.directory.name, name), encoding="utf-8") as file:
          cls.facts[name.split(".")[0]] = {key: int(value) for key, value in (line.split() for line in file)}

  @classmethod
  def tearDownClass(cls):
    cls.directory.cleanup()

  def each(self, target, check):
    """Calls check(text, facts) for each sample of a target."""
    names = sorted(name for name in os.listdir(self.directory.name) if f".{target}." in name)
    self.assertTrue(names, target)
    for name in names:
      with self.subTest(name):
        check(self.text(name), self.facts[name.split(".")[0]])

  def text(self, name):
    with open(os.path.join(self.directory.name, name), encoding="utf-8") as file:
      return file.read()

  def test_jax_runs_and_its_specs_name_axes_of_the_mesh(self):

    def check(text, facts):
      ast.parse(text)
      calls, names = {}, {}
      modules = fake_jax(calls)
      saved = {name: sys.modules.get(name) for name in modules}
      sys.modules.update(modules)
      try:
        exec(compile(text, "rendering", "exec"), names)  # pylint: disable=exec-used
      finally:
        for name, module in saved.items():
          sys.modules.pop(name)
          if module is not None:
            sys.modules[name] = module
      shape = names["mesh"].shape
      self.assertEqual(product(shape.values()), facts["chips"] * facts["devices_per_chip"])
      self.assertEqual(calls["slices"], facts["slices"])
      doubled = [axis for axis, size in shape.items() if size != facts[axis]]
      self.assertEqual(len(doubled), 1 if facts["devices_per_chip"] > 1 else 0)
      for table in ("PARAMETERS", "GRADIENTS", "OPTIMIZER_STATE", "ACTIVATIONS"):
        for key, spec in names[table].items():
          self.assertIsInstance(spec, Spec, key)
          self.assertLessEqual(spec.axes, set(shape), key)
          names["stacked"](spec)
      # Every axis of more than one device splits something, and the axes of a batch split the batch.
      used = set().union(*(spec.axes for table in ("PARAMETERS", "ACTIVATIONS") for spec in names[table].values()))
      self.assertEqual(used | ({"pipeline"} & set(shape)), set(shape))
      batch = Spec(names["ACTIVATIONS"]["tokens"][0])
      shards = product(shape[axis] for axis in batch.axes)
      passes = facts["accumulation"] * facts["microbatches"]
      self.assertEqual(facts["global_batch"] % (shards * passes), 0)
      # Dense weights are split over tensor and what WeightSharding names: never over expert or pipeline.
      for key in ("embed_tokens", "norm"):
        self.assertFalse(names["PARAMETERS"][key].axes & {"expert", "pipeline"})

    self.each("JAX", check)

  def test_maxtext_keys_and_products(self):

    def check(text, facts):
      (config,) = documents(text)
      for key, value in config.items():
        axis = re.fullmatch(r"(ici|dcn)_(.*)_parallelism", key)
        if axis:
          self.assertIn(axis[2], MAXTEXT_AXES)
          self.assertIs(type(value), int)
        elif key in MAXTEXT_TENSORS:
          self.assertIn(value, ("remat", "device", "offload"), key)
          self.assertEqual(config["remat_policy"], "custom")
        else:
          self.assertIn(key, MAXTEXT_KEYS)
          self.assertIsInstance(value, MAXTEXT_KEYS[key], key)
      self.assertIn(config["remat_policy"], MAXTEXT_POLICIES)
      ici = product(config[f"ici_{axis}_parallelism"] for axis in MAXTEXT_AXES)
      dcn = product(config[f"dcn_{axis}_parallelism"] for axis in MAXTEXT_AXES)
      devices = facts["chips"] * facts["devices_per_chip"]
      self.assertEqual(ici, devices // facts["slices"])
      self.assertEqual(dcn, facts["slices"])
      self.assertEqual(config["per_device_batch_size"] * devices * config["gradient_accumulation_steps"],
                       facts["global_batch"])
      if facts["pipeline"] > 1:
        self.assertEqual(facts["pipeline"] * config["num_layers_per_pipeline_stage"] * config["num_pipeline_repeats"],
                         facts["layers"])
        self.assertEqual(config["num_pipeline_microbatches"] % facts["pipeline"], 0)
      self.assertNotIn(True, [isinstance(value, str) and " " in value for value in config.values()],
                       "a value that key=value on the command line would split")

    self.each("MaxText", check)

  def check_labels(self, labels):
    for key, value in labels.items():
      self.assertRegex(key, LABEL_KEY)
      self.assertIs(type(value), str, key)
      self.assertRegex(value, LABEL_VALUE)
      self.assertLessEqual(len(value), 63)

  def check_object(self, document):
    self.assertTrue(document["apiVersion"] and document["kind"])
    self.assertRegex(document["metadata"]["name"], DNS_1123)
    self.assertLessEqual(len(document["metadata"]["name"]), 63)
    self.check_labels(document["metadata"].get("labels", {}))

  def test_gke_jobset_has_the_chips_of_the_plan(self):

    def check(text, facts):
      (jobset,) = documents(text)
      self.check_object(jobset)
      self.assertEqual((jobset["apiVersion"], jobset["kind"]), ("jobset.x-k8s.io/v1alpha2", "JobSet"))
      (job,) = jobset["spec"]["replicatedJobs"]
      spec = job["template"]["spec"]
      pod = spec["template"]["spec"]
      self.assertEqual(spec["parallelism"], spec["completions"])
      self.assertEqual(job["replicas"], facts["slices"])
      (container,) = pod["containers"]
      resource = "google.com/tpu" if facts["torus"] else "nvidia.com/gpu"
      chips = container["resources"]["limits"][resource]
      self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])
      self.assertEqual(job["replicas"] * spec["parallelism"] * chips, facts["chips"])
      self.check_labels(pod["nodeSelector"])
      self.assertIn("cloud.google.com/gke-tpu-topology" if facts["torus"] else "cloud.google.com/gke-accelerator",
                    pod["nodeSelector"])
      pod_name = f"{jobset['metadata']['name']}-{job['name']}-{job['replicas'] - 1}-{spec['parallelism'] - 1}-abcde"
      self.assertLessEqual(len(pod_name), 63)

    self.each("GKE_JobSet", check)

  def test_kueue_flavor_matches_the_jobset(self):

    def check(text, facts):
      objects = {document["kind"]: document for document in documents(text)}
      for document in objects.values():
        self.check_object(document)
        self.assertEqual(document["apiVersion"], "kueue.x-k8s.io/v1beta2")
      flavor = objects["ResourceFlavor"]
      (name,) = (name for name, value in self.facts.items() if value is facts)
      (jobset,) = documents(self.text(f"{name}.GKE_JobSet.yaml"))
      pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
      self.assertEqual(flavor["spec"]["nodeLabels"], pod["nodeSelector"])
      if not facts["torus"]:
        self.assertEqual(flavor["spec"]["topologyName"], objects["Topology"]["metadata"]["name"])
      (group,) = objects["ClusterQueue"]["spec"]["resourceGroups"]
      (quota,) = group["flavors"]
      self.assertEqual(quota["name"], flavor["metadata"]["name"])
      self.assertEqual([resource["name"] for resource in quota["resources"]], group["coveredResources"])
      self.assertEqual(quota["resources"][0]["nominalQuota"], facts["chips"])

    self.each("Kueue", check)

  def check_pod(self, pod, torus):
    self.check_labels(pod["metadata"]["labels"])
    spec = pod["spec"]
    self.check_labels(spec["nodeSelector"])
    self.assertIn("cloud.google.com/gke-tpu-topology" if torus else "cloud.google.com/gke-accelerator",
                  spec["nodeSelector"])
    (container,) = spec["containers"]
    self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])
    self.assertEqual(container["command"], ["bash", "-c"])
    (script,) = container["args"]
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    names = [variable["name"] for variable in container["env"]]
    for name in re.findall(r"\$\{(YOUR_[A-Z_]+)", script):
      self.assertIn(name, names)
    return script, container["resources"]["limits"]["google.com/tpu" if torus else "nvidia.com/gpu"]

  def test_gke_serving_has_the_chips_of_the_plan_and_runs_its_command(self):

    def check(text, facts):
      (name,) = (name for name, value in self.facts.items() if value is facts)
      objects = documents(text)
      self.assertEqual(len(objects), facts["pools"])
      names = set()
      for i, document in enumerate(objects):
        self.check_object(document)
        names.add(document["metadata"]["name"])
        spec = document["spec"]
        self.assertEqual(spec["replicas"], facts[f"replicas{i}"])
        if document["kind"] == "Deployment":
          self.assertEqual(document["apiVersion"], "apps/v1")
          self.assertEqual(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"])
          script, chips = self.check_pod(spec["template"], facts["torus"])
          self.assertEqual(chips, facts[f"chips{i}"])
        else:
          self.assertEqual((document["apiVersion"], document["kind"]),
                           ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"))
          group = spec["leaderWorkerTemplate"]
          script, chips = self.check_pod(group["leaderTemplate"], facts["torus"])
          joins, worker_chips = self.check_pod(group["workerTemplate"], facts["torus"])
          self.assertIn("LWS_LEADER_ADDRESS", joins)
          self.assertEqual(worker_chips, chips)
          self.assertEqual(group["size"] * chips, facts[f"chips{i}"])
        served = script[min(j for j in (script.find("vllm serve"), script.find("VLLM_PP")) if j >= 0):]
        self.assertIn(served.split(), [
            command.split() for command in re.findall(r"^(?:VLLM_PP\S+ )?vllm serve (?:.*\\\n)*.*$",
                                                      self.text(f"{name}.vLLM.shell"), re.M)])
      self.assertEqual(len(names), len(objects))

    self.each("GKE_serving", check)

  def test_kueue_serving_has_quota_for_all_replicas(self):

    def check(text, facts):
      objects = documents(text)
      for document in objects:
        self.check_object(document)
        self.assertEqual(document["apiVersion"], "kueue.x-k8s.io/v1beta2")
      flavors = {document["metadata"]["name"] for document in objects if document["kind"] == "ResourceFlavor"}
      (queue,) = (document for document in objects if document["kind"] == "ClusterQueue")
      quotas = {flavor["name"]: flavor["resources"][0]["nominalQuota"]
                for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]}
      self.assertEqual(set(quotas), flavors)
      self.assertEqual(sum(quotas.values()),
                       sum(facts[f"chips{i}"] * facts[f"replicas{i}"] for i in range(facts["pools"])))

    self.each("Kueue_serving", check)

  def words(self, text, command):
    """The words that bash gives to `command`; variables to fill in hold a space, to see that they stay one word."""
    fill = {name: f"{name} value" for name in re.findall(r"YOUR_[A-Z_]+", text) if "${" + name in text}
    script = f'{command}() {{ printf "%s\\0" "$@"; }}\nMODEL_ARGS=(--of "the model")\n' + text
    run = subprocess.run(["bash", "-eu"], input=script, text=True, check=True, capture_output=True,
                         env={"PATH": os.environ["PATH"], **fill})
    self.assertEqual(run.stderr, "")
    words = run.stdout.split("\0")[:-1]
    self.assertNotIn("\n", "".join(words))
    return words

  def test_megatron_flags(self):

    def check(text, facts):
      words = self.words(text, "torchrun")
      launcher, flags = words[:words.index("pretrain_gpt.py")], words[words.index("pretrain_gpt.py") + 1:]
      self.assertEqual(flags[-2:], ["--of", "the model"])
      options = dict(zip(launcher[::2], launcher[1::2]))
      world = int(options["--nnodes"]) * int(options["--nproc-per-node"])
      self.assertEqual(world, facts["chips"])
      args = megatron_parser().parse_args(flags[:-2])
      tensor = args.tensor_model_parallel_size
      model = tensor * (args.pipeline_model_parallel_size or 1) * (args.context_parallel_size or 1)
      self.assertEqual(world % model, 0)
      replicas = world // model
      self.assertEqual(replicas, facts["data"] * facts["fsdp"] * facts["expert"])
      self.assertEqual(args.global_batch_size,
                       args.micro_batch_size * replicas * facts["accumulation"] * facts["microbatches"])
      # What validate_args of that file asserts.
      if args.overlap_param_gather:
        self.assertTrue(args.overlap_grad_reduce and (args.use_distributed_optimizer or args.use_megatron_fsdp))
      if args.use_precision_aware_optimizer or args.use_megatron_fsdp:
        self.assertTrue(args.use_distributed_optimizer)
      if args.use_megatron_fsdp:
        self.assertEqual(args.ckpt_format, "fsdp_dtensor")
        self.assertNotIn("CUDA_DEVICE_MAX_CONNECTIONS=1", text)
      if args.pipeline_model_parallel_layout:
        self.assertIsNone(args.num_virtual_stages_per_pipeline_rank)
        layers = layout_layers(args.pipeline_model_parallel_layout)
        self.assertEqual(sum(layers), facts["layers"])
        self.assertEqual(len(layers) % args.pipeline_model_parallel_size, 0)
      elif args.pipeline_model_parallel_size:
        self.assertEqual(facts["layers"] % args.pipeline_model_parallel_size, 0)
      if args.expert_model_parallel_size:
        dense = world // ((args.pipeline_model_parallel_size or 1) * args.expert_model_parallel_size
                          * args.expert_tensor_parallel_size)
        self.assertGreaterEqual(dense, 1)

    self.each("Megatron", check)

  def test_xpk_command(self):

    def check(text, facts):
      args = xpk_parser().parse_args(self.words(text, "xpk"))
      self.assertEqual(args.words, ["workload", "create"])
      self.assertEqual(args.num_slices, facts["slices"])
      self.assertRegex(args.workload, r"\A[a-z]([-a-z0-9]*[a-z0-9])?\Z")
      self.assertLessEqual(len(args.workload), 28)

    self.each("XPK", check)

  def test_cloud_tpu_request(self):

    def check(text, facts):
      args = gcloud_parser().parse_args(self.words(text, "gcloud"))
      self.assertEqual(args.words[-5:-1], ["compute", "tpus", "queued-resources", "create"])
      self.assertEqual(args.node_count or 1, facts["slices"])
      self.assertRegex(args.words[-1], DNS_1123)
      if args.provisioning_model:
        self.assertEqual(args.words[0], "alpha")

    self.each("Cloud_TPU", check)

  def test_vllm_arguments(self):

    def check(text, facts):
      words = self.words(text, "vllm")
      starts = [i for i, word in enumerate(words) if word == "serve"]
      self.assertEqual(len(starts), facts["pools"])
      for pool, start in enumerate(starts):
        end = starts[pool + 1] if pool + 1 < len(starts) else len(words)
        args = vllm_parser().parse_args(words[start + 1:end])
        self.assertEqual(args.model, "YOUR_MODEL value")
        of = lambda name: facts[f"{name}{pool}"]  # pylint: disable=cell-var-from-loop
        strategy = (args.additional_config or {}).get("sharding", {}).get("sharding_strategy", {})
        ranks = (args.tensor_parallel_size * (args.pipeline_parallel_size or 1) * (args.data_parallel_size or 1)
                 * strategy.get("expert_parallelism", 1))
        self.assertEqual(ranks, of("chips"))
        self.assertEqual(args.tensor_parallel_size, of("tensor"))
        self.assertEqual(strategy.get("tensor_parallelism", args.tensor_parallel_size), args.tensor_parallel_size)
        self.assertEqual(args.pipeline_parallel_size or 1, of("pipeline"))
        self.assertEqual(bool(args.enable_expert_parallel), of("expert") > 1 and not facts["torus"])
        # What vLLM's SchedulerConfig asserts.
        self.assertGreaterEqual(args.max_num_batched_tokens, args.max_num_seqs)
        if not args.enable_chunked_prefill:
          self.assertGreaterEqual(args.max_num_batched_tokens, args.max_model_len)
        self.assertGreaterEqual(args.max_model_len, facts["context"])
        self.assertGreater(args.gpu_memory_utilization, 0)
        self.assertLessEqual(args.gpu_memory_utilization, 1)
        self.assertLess(args.max_num_seqs * (args.data_parallel_size or 1) - facts["max_batch"], of("chips"))
        if args.speculative_config:
          self.assertEqual(args.speculative_config["model"], "YOUR_DRAFT_MODEL value")
          self.assertGreaterEqual(args.speculative_config["num_speculative_tokens"], 1)
        partition = re.findall(r"VLLM_PP_LAYER_PARTITION=([0-9,]+)", text)
        if partition:
          layers = [int(part) for part in partition[0].split(",")]
          self.assertEqual((len(layers), sum(layers)), (args.pipeline_parallel_size, facts["layers"]))

    self.each("vLLM", check)


if __name__ == "__main__":
  RenderingsTest.program = sys.argv.pop(1)
  unittest.main()
