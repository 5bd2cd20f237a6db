// Checks Kubernetes objects (a JSON array on standard input) against the schemas of their kinds: types, required fields,
// patterns, and fields that the schema does not have. Prints each violation; the exit status is 1 when there is one.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../tools/package.json", import.meta.url));

function modelOf({ apiVersion, kind }) {
  const path = apiVersion.startsWith("monitoring.coreos.com/")
    ? `@kubernetes-models/prometheus-operator/${apiVersion}/${kind}`
    : `kubernetes-models/${apiVersion}/${kind}`;
  return require(path)[kind];
}

// The schemas allow any field beside their own, so a misspelt one would pass: it is one that the validator never reads.
function recorder(value, path, seen) {
  if (value === null || typeof value !== "object") return value;
  const children = new Map();
  return new Proxy(value, {
    get(target, key) {
      if (typeof key === "symbol" || !Object.hasOwn(target, key)) return target[key];
      seen.add(`${path}/${key}`);
      if (!children.has(key)) children.set(key, recorder(target[key], `${path}/${key}`, seen));
      return children.get(key);
    },
  });
}

// Fields below `value` that were not read. Below one that may hold anything, nothing is.
function* unread(value, path, seen) {
  if (value === null || typeof value !== "object") return;
  for (const [key, child] of Object.entries(value)) {
    const at = `${path}/${key}`;
    if (!seen.has(at)) yield at;
    else yield* unread(child, at, seen);
  }
}

function* violations(object) {
  let model;
  try {
    model = modelOf(object);
  } catch {
    yield `no schema of ${object.apiVersion} ${object.kind}`;
    return;
  }
  const seen = new Set();
  try {
    // Not of an instance: its constructor copies, which reads everything.
    model.prototype.validate.call(recorder(object, "", seen));
  } catch (error) {
    for (const { instancePath, message } of error.errors ?? [{ instancePath: "", message: error.message }]) {
      yield `${instancePath || "/"} ${message}`;
    }
  }
  for (const path of unread(object, "", seen)) yield `${path} is no field of ${object.kind}`;
}

let failed = false;
for (const object of JSON.parse(await text(process.stdin))) {
  for (const violation of violations(object)) {
    console.log(`${object.kind} ${object.metadata?.name}: ${violation}`);
    failed = true;
  }
}
process.exitCode = failed ? 1 : 0;
