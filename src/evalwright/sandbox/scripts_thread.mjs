// Runs the scripts of one suite, one after the other: code that comes with the request, or a function of a file.
import module, { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";

const MOST_COMPILED = 1000;
const compiled = new Map();
const instances = new Map();
const given = { ...process.env };
process.mainModule = { require: createRequire(path.join(workerData.folder, "noname.js")) };

// TypeScript names a file without its ending, or by the JavaScript that is made of it. An older Node cannot be told.
module.registerHooks?.({
  resolve(specifier, context, next) {
    try {
      return next(specifier, context);
    } catch (error) {
      if (!/^\.{1,2}\//.test(specifier) || !/\.[cm]?tsx?$/.test(context.parentURL ?? "")) throw error;
      for (const source of sourcesOf(specifier)) {
        try {
          return next(source, context);
        } catch {}
      }
      throw error;
    }
  },
});

function sourcesOf(specifier) {
  const made = /\.([cm]?)js(x?)$/.exec(specifier);
  if (made) return [`${specifier.slice(0, made.index)}.${made[1]}ts${made[2]}`];
  return [".ts", ".tsx", ".mts", ".cts", "/index.ts"].map((end) => specifier + end);
}

function functionOf(code, names) {
  const key = JSON.stringify([code, names]);
  let found = compiled.get(key);
  if (!found) {
    if (compiled.size >= MOST_COMPILED) compiled.clear();
    try {
      found = new Function(...names, "process", code);
    } catch (error) {
      throw Object.assign(error, { unusable: true });
    }
    compiled.set(key, found);
  }
  return found;
}

async function loaded(file, name, orWhole = false) {
  let exported;
  try {
    exported = await import(pathToFileURL(file).href);
  } catch (error) {
    throw Object.assign(error instanceof Error ? error : new Error(String(error)), { unusable: true });
  }
  const whole = exported.default ?? exported;
  const only = whole.default ?? whole;
  const otherwise = orWhole && typeof only === "function" ? only : undefined;
  const found = name ? (exported[name] ?? whole[name] ?? otherwise) : only;
  if (found === undefined) {
    throw Object.assign(new Error(`${path.basename(file)} exports no ${name}`), { unusable: true });
  }
  return found;
}

function living(context) {
  if (context && typeof context === "object" && context.provider && typeof context.provider.id === "string") {
    const id = context.provider.id;
    context.provider.id = () => id;
  }
  return context;
}

async function provided(request) {
  const key = JSON.stringify([request.file, request.name, request.options]);
  if (!instances.has(key)) {
    const found = await loaded(request.file, request.name);
    const isClass = typeof found === "function" && typeof found.prototype?.callApi === "function";
    instances.set(key, isClass ? new found(request.options) : found);
  }
  const provider = instances.get(key);
  const [prompt, known] = request.arguments;
  const context = { ...known, logger: console }; // promptfoo's logger has the same methods
  if (typeof provider === "function") return provider(prompt, context, request.options);
  return provider.callApi(prompt, context, request.options);
}

// JSON leaves functions out: where data is asked for, a configuration with one would mean something else without it.
function refuseFunctions(value, place) {
  if (typeof value === "function") throw new Error(`${place || "it"} is a function: put it into a file and name that`);
  if (Array.isArray(value)) value.forEach((one, i) => refuseFunctions(one, `${place}[${i}]`));
  else if (value && typeof value === "object" && typeof value.toJSON !== "function")
    for (const [key, one] of Object.entries(value)) refuseFunctions(one, place ? `${place}.${key}` : key);
}

async function result(request) {
  if (request.options) return provided(request);
  const given = request.living ? request.arguments.map(living) : request.arguments;
  if (request.file === undefined) return functionOf(request.code, request.names)(...given, process);
  const found = await loaded(request.file, request.name, request.or_whole);
  return typeof found === "function" ? found(...given) : found;
}

function variablesSet() {
  return Object.fromEntries(Object.entries(process.env).filter(([name, value]) => value !== given[name]));
}

parentPort.on("message", async (request) => {
  let reply;
  try {
    const value = await result(request);
    if (request.data) refuseFunctions(value, "");
    const variables = request.variables ? variablesSet() : undefined;
    reply = JSON.stringify({ value: value === undefined || request.silent ? null : value, variables });
  } catch (error) {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    reply = JSON.stringify({ error: error?.unusable ? "unusable" : "exception", message });
  }
  parentPort.postMessage(reply);
});
