/**
 * What a client's code is compared by (`recognize.ts`); `tools/known-clients.ts` makes the table of releases with the
 * same functions.
 *
 * `filesDigest`: the bytes of the files that order commands and replies, as V8 has compiled them. That catches every
 * change by a release, a patch on disk or the hook of a loader. What is left are the other files: they make values,
 * errors, sockets, or clients of their own. The text on disk and that of the functions that can be reached would be had
 * without the trap below, and would catch what patches and APMs do; but not a hook's change of what a file keeps to
 * itself, and that is most of the decoders.
 *
 * `methodDigest`: the names in a method, where no file tells: in bundles, in Jest, on Bun and Deno. That catches
 * another member or method, and one more or less of them. What is left are another order of the same names, and
 * functions that cannot be reached.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import type { AnyFunction } from './types.js';

/** A module in Node's cache. */
export interface LoadedModule {
  readonly filename: string;
  readonly exports: unknown;
  /** The modules that it was the first to load. Others only without the hooks of APMs, which answer `require`. */
  readonly children: readonly LoadedModule[];
}

/** Node's cache of modules, by path. */
export type LoadedModules = Readonly<Record<string, LoadedModule | undefined>>;

/**
 * The files that clients rest on, those of other packages too; the rest make values, errors, sockets, or clients of
 * their own. V8 tells which script a function is of when it throws. So for each file there is a function that can be
 * called without an effect: its body begins with a look at a property, as shown, and what it is given throws there.
 * Some files have two, because releases differ, or because layers may have replaced the first.
 */
const ENTRANCES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Command.js': { getSlot: 'if (typeof this.' },
  'DataHandler.js': { returnFatalError: 'err.' },
  'Pipeline.js': { multi: 'this.', sendCommand: 'if (this.' },
  'Redis.js': { resetCommandQueue: 'this.' },
  'Script.js': { execute: 'if (typeof this.' },
  'SubscriptionSet.js': { add: 'this.' },
  'autoPipelining.js': { getFirstValueInFlattenedArray: 'for (let i = 0; i < args.' },
  'cluster/ConnectionPool.js': { getNodes: 'const nodes = this.', removeNode: 'const { nodeRecords } = this;' },
  'cluster/DelayQueue.js': { execute: 'const queue = this.' },
  'cluster/index.js': { resetOfflineQueue: 'this.' },
  'cluster/util.js': { getNodeKey: 'node.' },
  'connectors/StandaloneConnector.js': { connect: 'const { options } = this;' },
  'himport/HimportCoordinator.js': { getDefinitions: 'return this.' },
  'redis/event_handler.js': {
    readyHandler: 'return function () {\n        self.',
    closeHandler: 'return function () {\n        const prevStatus = self.',
  },
  'replyTransformers.js': { transformVsimReply: 'return vsimTransformers[context.' },
  'resp/decoder.js': { reset: '__classPrivateFieldSet(this,' },
  'tracing.js': { traceConnect: 'if (!shouldTrace(connectChannel))\n        return fn(' },
  'transaction.js': { addTransactionSupport: 'redis.' },
  'utils/Commander.js': { addBuiltinCommand: 'this.' },
  'utils/argumentParsers.js': { parseBlockOption: 'for (let i = 0; i < args.' },
  'utils/debug.js': { genRedactedString: 'const { length } = str;' },
  'utils/index.js': { sample: 'const length = array.' },
  'denque/index.js': { peekFront: 'return this.' },
  'redis-parser/lib/parser.js': { reset: 'this.' },
  'standard-as-callback/built/index.js': { default: 'if (typeof nodeback === "function") {\n        promise.' },
};

/** The exports of a module: functions, or a class in one of two places or alone. */
export interface Exported {
  readonly prototype?: object;
  readonly default?: Exported;
  readonly Decoder?: Exported;
}

/** Packages that all clients require, and that are digested with them. */
const PACKAGES = ['denque', 'standard-as-callback'];
/** The one that a client without a decoder of its own requires. */
const DECODER_PACKAGE = 'redis-parser';

const THROWS = () => {
  throw new Error();
};
const TRAP = new Proxy(THROWS, { get: THROWS, set: THROWS });

interface CallSite {
  getFileName(): string | null;
  getScriptHash(): string;
}

/** SHA-256 of a module of this name, such as `redis/event_handler.js`, in hexadecimal digits. */
export type Hash = (module: LoadedModule, name: string) => string | undefined;

/**
 * The digest of the files that a package's clients rest on. The sum of the first 48 bits of the hashes, since modules
 * are in no order; `NaN` if one has none, undefined if one is not in the cache.
 *
 * @param folder - of its JavaScript, as it begins the paths of the files.
 * @param whole - with what a Cluster rests on beyond other clients.
 * @throws {Error} `MODULE_NOT_FOUND` for a package that it requires, and whatever a hook of Node's loader throws.
 */
export function filesDigest(folder: string, cache: LoadedModules, whole: boolean, hash: Hash): string | undefined {
  const modules = new Map<string, LoadedModule | undefined>();
  for (const path of Object.keys(cache))
    if (path.startsWith(folder)) modules.set(path.slice(folder.length).replaceAll('\\', '/'), cache[path]);
  const { resolve } = Module.createRequire(`${folder}Redis.js`);
  for (const name of modules.has('resp/decoder.js') ? PACKAGES : [...PACKAGES, DECODER_PACKAGE]) {
    const main = cache[resolve(name)];
    if (main === undefined) return undefined;
    for (const module of [main, ...main.children]) modules.set(pathInPackage(module.filename, name), module);
  }
  let sum = 0;
  for (const [name, module] of modules) {
    if (module === undefined || !(name in ENTRANCES) || (name.startsWith('cluster/') && !whole)) continue;
    sum += Number.parseInt(hash(module, name)?.slice(0, 12) ?? '', 16);
  }
  return sum.toString(36);
}

/** Such as `denque/index.js`. */
const pathInPackage = (path: string, name: string) => path.slice(path.lastIndexOf(name)).replaceAll('\\', '/');

/** Of the text on disk. */
export const fileHash: Hash = ({ filename }) => createHash('sha256').update(readFileSync(filename)).digest('hex');

/**
 * Of the text from which it was compiled. V8 tells it of functions on the stack of an error, so one of the module's is
 * called. Undefined if there is none that begins as expected.
 */
export const loadedHash: Hash = (module, file) => {
  const exported = (module.exports ?? {}) as Exported;
  const { prototype } = classOf(module);
  for (const [name, beginning] of Object.entries(ENTRANCES[file] ?? {})) {
    const method: unknown = Reflect.get(prototype ?? exported, name) ?? Reflect.get(exported, name);
    const source = typeof method === 'function' ? sourceOf(method as AnyFunction) : '';
    const body = source.slice(source.indexOf('{') + 1, 200).trimStart();
    if (source.startsWith('async') || !body.startsWith(beginning)) continue;
    const sites = callSites(() => ((method as AnyFunction).call(TRAP, TRAP, TRAP) as AnyFunction).call(undefined));
    return sites.find((site) => site.getFileName() === module.filename)?.getScriptHash();
  }
  return undefined;
};

export const classOf = ({ exports }: LoadedModule): Exported => {
  const exported = (exports ?? {}) as Exported;
  return exported.Decoder ?? exported.default ?? exported;
};

/** The functions on the stack when `call` throws. */
function callSites(call: () => void): readonly CallSite[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = 5;
  Error.prepareStackTrace = (_, sites) => sites;
  try {
    call();
    return [];
  } catch (error) {
    return (error as { stack: CallSite[] }).stack;
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

export const sourceOf = (method: AnyFunction) => Function.prototype.toString.call(method);

/** Words that bundlers and minifiers leave alone: property names, private ones too, and those of async functions. */
const NAMES = /(?<!\.)\??\.#?([A-Za-z_$][\w$]*)|#\w+|\b(?:async|await)\b/g;
export const COMMENTS = /\/\*[\s\S]*?\*\/|(?<=^|[^:'"`])\/\/.*$/gm;
/** Names that are not counted: those of imports in bundles, and what webpack and rollup put into `Pipeline#exec`. */
const UNRELIABLE = ['.default', '.length', '._groupsBySlot'];

/** How often each name occurs in a method, and how many parameters it has, in four characters. */
export function methodDigest(name: string, { length }: AnyFunction, source: string): string {
  const counts: Record<string, number> = {};
  for (const [found] of source.replaceAll(COMMENTS, '').matchAll(NAMES)) {
    const word = found.replace('?', '');
    if (!UNRELIABLE.includes(word)) counts[word] = (counts[word] ?? 0) + 1;
  }
  return createHash('sha256')
    .update(`${name} ${length} ${Object.entries(counts).sort().join()}`)
    .digest('base64url')
    .slice(0, 4);
}
