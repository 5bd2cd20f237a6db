// Clients from npm: @grpc/grpc-js, a second gRPC stack, with nothing but the server's reflection, and @connectrpc/connect
// as browsers use it, with the protos of the repository.
//   node node_test.mjs SERVER-PROGRAM
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {fileURLToPath} from 'node:url';

const tools = createRequire(new URL('../../tools/package.json', import.meta.url));
const grpc = tools('@grpc/grpc-js');
const {GrpcReflection} = tools('grpc-js-reflection-client');
const {createFileRegistry, fromBinary} = tools('@bufbuild/protobuf');
const {FileDescriptorSetSchema} = tools('@bufbuild/protobuf/wkt');
const {Code, ConnectError, createClient} = tools('@connectrpc/connect');
const {createConnectTransport} = tools('@connectrpc/connect-web');

const CALL_MILLISECONDS = 60_000;
const PLANNER = 'sliceplan.v1.PlannerService';
const LOADER_OPTIONS = {keepCase: true, longs: String, enums: String, defaults: true, oneofs: true};

const config = readFileSync(new URL('../../examples/llama-3-70b/config.json', import.meta.url), 'utf8');
const llama = (ici, fields = {}) => ({
  model: {hugging_face_config: config},
  slice: {accelerator: 'tpu-v5p', topology: '16x16x16', slice_count: 2},
  workload: {sequence_length: 4096, global_batch_tokens: String(4 * 2 ** 20), total_tokens: '15000000000000'},
  parallelism: {ici, dcn: {data: 2}},
  ...fields,
});

const FIVE_VIOLATIONS = {
  model: {preset: 'llama-3-70b'},
  slice: {accelerator: 'tpu-v5p', topology: '16x16x16', slice_count: -2},
  workload: {sequence_length: -5, total_tokens: '-1', gradient_accumulation: -2},
  assumed_mfu_ratio: 1.5,
};
const FIVE_FIELDS = [
  'assumed_mfu_ratio', 'slice.slice_count', 'workload.gradient_accumulation', 'workload.sequence_length',
  'workload.total_tokens',
];

// Resolves to {reply} or {error}.
function call(client, method, request) {
  return new Promise((resolve) => {
    client[method](request, {deadline: Date.now() + CALL_MILLISECONDS},
                   (error, reply) => resolve(error ? {error} : {reply}));
  });
}

// The google.rpc.Status of a failed call and its details by type, through the descriptors that the server serves.
function detailsOf(error, typeOf) {
  const status = typeOf('google.rpc.Status').decode(error.metadata.get('grpc-status-details-bin')[0]);
  const details = {};
  for (const {type_url: typeUrl, typeUrl: camel, value} of status.details) {
    const name = (typeUrl ?? camel).split('/').pop();
    details[name] = typeOf(name).decode(value);
  }
  return {status, details};
}

// Checks over gRPC; resolves to the seconds of a step.
async function checkGrpc(address) {
  const credentials = grpc.credentials.createInsecure();
  const reflection = new GrpcReflection(address, credentials);
  const services = await reflection.listServices();
  assert(services.includes(PLANNER), String(services));
  for (const service of services.filter((name) => !name.startsWith('grpc.reflection'))) {
    assert((await reflection.listMethods(service)).length > 0, service);
  }

  const descriptor = await reflection.getDescriptorBySymbol(PLANNER);
  const {PlannerService} = descriptor.getPackageObject(LOADER_OPTIONS).sliceplan.v1;
  const client = new PlannerService(address, credentials);
  try {
    const question = llama({fsdp: 512, context: 8}, {estimation_mode: 'ESTIMATION_MODE_ROOFLINE'});
    const {reply, error} = await call(client, 'EstimateTraining', question);
    assert.ifError(error);
    const {estimate} = reply;
    assert.equal(estimate.chip_count, 8192);
    assert.equal(estimate.bottleneck.resource, 'RESOURCE_ICI');
    assert.equal(estimate.thresholds.tokens_per_chip, 512);
    const parts = estimate.breakdown.reduce((sum, entry) => sum + entry.seconds, 0);
    const step = estimate.step_time.expected_seconds;
    assert(Math.abs(parts - step) <= 1e-9 * step, `${parts} ${step}`);

    const {error: refused} = await call(client, 'EstimateTraining', FIVE_VIOLATIONS);
    assert.equal(refused?.code, grpc.status.INVALID_ARGUMENT);
    const roots = {};
    for (const name of ['google.rpc.Status', 'google.rpc.BadRequest', 'google.rpc.ErrorInfo']) {
      roots[name] = (await reflection.getDescriptorBySymbol(name)).getProtobufJsRoot();
    }
    const {status, details} = detailsOf(refused, (name) => roots[name].lookupType(name));
    assert.equal(status.code, grpc.status.INVALID_ARGUMENT);
    assert.equal(status.message, refused.details);
    assert.deepEqual(Object.keys(details).sort(), ['google.rpc.BadRequest', 'google.rpc.ErrorInfo']);
    const violations = details['google.rpc.BadRequest'].toJSON();
    const fields = (violations.field_violations ?? violations.fieldViolations).map((violation) => violation.field);
    assert.deepEqual(fields.sort(), FIVE_FIELDS);

    const {error: empty} = await call(client, 'EstimateServing', {});
    assert.equal(empty?.code, grpc.status.INVALID_ARGUMENT);
    return step;
  } finally {
    client.close();
  }
}

function protos() {
  const root = fileURLToPath(new URL('../../proto', import.meta.url));
  const directory = mkdtempSync(join(tmpdir(), 'sliceplan-protos-'));
  try {
    const file = join(directory, 'descriptors');
    const made = spawnSync('protoc', [
      `-I${root}`, '--include_imports', `--descriptor_set_out=${file}`, 'sliceplan/v1/planner_service.proto',
      'google/rpc/error_details.proto',
    ]);
    assert.equal(made.status, 0, String(made.stderr));
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)));
  } finally {
    rmSync(directory, {recursive: true});
  }
}

// Both encodings, POST and GET: the seconds are those over gRPC, errors have their details.
async function checkConnect(address, stepSeconds) {
  const registry = protos();
  for (const useBinaryFormat of [false, true]) {
    for (const useHttpGet of [false, true]) {
      const transport = createConnectTransport({
        baseUrl: `http://${address}`, useBinaryFormat, useHttpGet, jsonOptions: {registry},
        defaultTimeoutMs: CALL_MILLISECONDS,
      });
      const client = createClient(registry.getService(PLANNER), transport);
      const {estimate} = await client.estimateTraining({
        model: {source: {case: 'huggingFaceConfig', value: config}},
        slice: {acceleratorSource: {case: 'accelerator', value: 'tpu-v5p'}, shape: {case: 'topology', value: '16x16x16'}, sliceCount: 2},
        workload: {sequenceLength: 4096, globalBatchTokens: 4n * 2n ** 20n, totalTokens: 15_000_000_000_000n},
        parallelism: {ici: {fsdp: 512, context: 8}, dcn: {data: 2}},
        estimationMode: 1,
      });
      assert.equal(estimate.stepTime.expectedSeconds, stepSeconds);
      const refused = await client.estimateTraining({slice: {sliceCount: -2}}).catch((error) => error);
      assert(refused instanceof ConnectError, String(refused));
      assert.equal(refused.code, Code.InvalidArgument);
      const [bad] = refused.findDetails(registry.getMessage('google.rpc.BadRequest'));
      assert(bad.fieldViolations.some(({field}) => field === 'slice.slice_count'), JSON.stringify(bad));
    }
  }
}

const server = spawn(process.argv[2], ['--port=0', '--http_port=0', '--drain_delay=0s'], {stdio: ['ignore', 'pipe', 'pipe']});
const ended = once(server, 'exit');
let log = '';
server.stderr.on('data', (text) => { log += text; });
const tooLong = setTimeout(() => server.kill('SIGKILL'), 2 * CALL_MILLISECONDS);
let status = 1;
try {
  const lines = createInterface({input: server.stdout})[Symbol.asyncIterator]();
  const port = async (name) => {
    const {value} = await Promise.race([
      lines.next(), ended.then(() => Promise.reject(new Error('the server did not start'))),
    ]);
    return value.match(new RegExp(`^${name}=(\\d+)$`))[1];
  };
  const grpcPort = await port('port');
  const httpPort = await port('http_port');
  const stepSeconds = await checkGrpc(`127.0.0.1:${grpcPort}`);
  await checkConnect(`127.0.0.1:${httpPort}`, stepSeconds);
  server.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  console.log('passed');
  status = 0;
} catch (error) {
  console.error(error);
  console.error(log);
} finally {
  clearTimeout(tooLong);
  server.kill('SIGKILL');
}
process.exit(status);
