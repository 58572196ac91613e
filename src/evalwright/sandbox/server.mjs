// The other side of workers.py for TypeScript: each piece of code runs in a worker thread of its own, with a heap, an
// environment and globals that nobody else has. Request and reply are JSON, each preceded by its length (8 bytes).
import module from "node:module";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { serve } from "./frames.mjs";

const LARGEST_REPLY = 64_000;
const LONGEST = 2000;
const MEMORY_MB = 256;
const missing = (process.argv[2] || "").split(",").filter(Boolean);

const RUNNER = `
import { parentPort, workerData } from "node:worker_threads";
const source = "data:text/javascript," + encodeURIComponent(workerData.code);
const { validate } = await import(source);
if (typeof validate !== "function") throw new Error("the code exports no function 'validate'");
const value = await validate(...workerData.arguments);
parentPort.postMessage(JSON.stringify({ value: value === undefined ? null : value }));
`;

let stripper;

function stripped(code, folders) {
  stripper ??= module.stripTypeScriptTypes ? transformed : transpiler(folders);
  return stripper(code);
}

function transformed(code) {
  return module.stripTypeScriptTypes(code, { mode: "transform" });
}

function transpiler(folders) {
  const beside = path.resolve(process.execPath, "../../lib/node_modules");
  const require = module.createRequire(import.meta.url);
  let typescript;
  try {
    typescript = require(require.resolve("typescript", { paths: [...folders, path.dirname(beside), beside] }));
  } catch {
    const cure = "pip install 'evalwright[typescript]', or the npm package 'typescript' in the working directory";
    throw new Error(`node ${process.version} cannot read TypeScript: ${cure}`);
  }
  const compilerOptions = { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 };
  return (code) => typescript.transpileModule(code, { compilerOptions }).outputText;
}

function messageOf(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function answer(request) {
  let code;
  try {
    stripper ?? stripped("", request.folders);
  } catch (error) {
    return Promise.resolve({ error: "not_started", message: error.message });
  }
  try {
    code = stripped(request.code, request.folders);
  } catch (error) {
    return Promise.resolve({ error: "exception", message: messageOf(error) });
  }
  return judged(code, request);
}

function judged(code, request) {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("data:text/javascript," + encodeURIComponent(RUNNER)), {
      workerData: { code, arguments: request.arguments },
      env: {},
      stdin: true,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    let printed = "";
    for (const stream of [worker.stdout, worker.stderr]) {
      stream.on("data", (chunk) => (printed = (printed + chunk).slice(-LONGEST)));
    }
    const late = { error: "timeout", message: `took more than ${request.seconds} s and was stopped` };
    const timer = setTimeout(() => done(late), request.seconds * 1000);
    async function done(reply) {
      clearTimeout(timer);
      worker.removeAllListeners("exit");
      await worker.terminate();
      resolve({ ...reply, printed });
    }
    worker.on("message", (said) => done(read(said)));
    worker.on("error", (error) => done({ error: "exception", message: messageOf(error).slice(0, LONGEST) }));
    worker.on("exit", (status) =>
      done({ error: "exit", message: `ended with exit code ${status} before it gave a verdict` }),
    );
  });
}

function read(said) {
  if (typeof said !== "string") return { error: "exit", message: "gave no verdict" };
  const size = Buffer.byteLength(said);
  if (size > LARGEST_REPLY) {
    return { error: "too_much_output", message: `gave ${size} bytes, at most ${LARGEST_REPLY} are read` };
  }
  try {
    return { value: JSON.parse(said).value };
  } catch {
    return { error: "exit", message: "gave no verdict" };
  }
}

await serve(answer, missing);
