// A long-lived Node for the scripts of one suite: what `workers.py` sends over stdin is run in one worker thread, which
// is kept from call to call and replaced when a script hangs, ends it or needs too much memory.
// Request and reply are JSON, each preceded by its length (8 bytes). Arguments: a folder, and the walls that are missing.
import { Worker } from "node:worker_threads";
import { serve } from "./frames.mjs";

const LARGEST_REPLY = 1_000_000;
const LONGEST = 2000;
const MEMORY_MB = 512;
const [folder, missing = ""] = process.argv.slice(2);
const walls = missing.split(",").filter(Boolean);
// Without it, Node only removes types and refuses what is more than that: enums, parameter properties, namespaces.
const TRANSFORMS = ["--experimental-transform-types"];
let thread;
let settle = () => {};

function started() {
  if (thread) return thread;
  const worker = new Worker(new URL("./scripts_thread.mjs", import.meta.url), {
    workerData: { folder },
    execArgv: TRANSFORMS.filter((flag) => process.allowedNodeEnvironmentFlags.has(flag)),
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  const ended = (message) => {
    if (thread !== worker) return;
    thread = undefined;
    settle({ error: "exit", message });
  };
  worker.stdout.resume();
  worker.stderr.resume();
  worker.on("message", (said) => settle(read(said)));
  worker.on("error", (error) => ended(`${error.name}: ${error.message}`.slice(0, LONGEST)));
  worker.on("exit", (status) => ended(`ended with exit code ${status}`));
  return (thread = worker);
}

async function answer(request) {
  const worker = started();
  const late = { error: "timeout", message: `took more than ${request.seconds} s and was stopped` };
  let timer;
  const reply = await new Promise((resolve) => {
    settle = resolve;
    timer = setTimeout(() => resolve(late), request.seconds * 1000);
    worker.postMessage(request);
  });
  clearTimeout(timer);
  settle = () => {};
  if (reply === late) {
    thread = undefined;
    await worker.terminate();
  }
  return reply;
}

function read(said) {
  if (typeof said !== "string") return { error: "exit", message: "gave no result" };
  if (said.length > LARGEST_REPLY) {
    return { error: "too_much_output", message: `gave ${said.length} characters, at most ${LARGEST_REPLY} are read` };
  }
  const { value = null, variables, error, message } = JSON.parse(said);
  return error ? { error: String(error), message: String(message).slice(0, LONGEST) } : { value, variables };
}

await serve(answer, walls);
