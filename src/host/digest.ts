/**
 * Digests of the code of a client, by which `recognize.ts` finds it in the table of known releases; `tools/known-clients.ts`
 * makes that table with the same functions.
 */
import { createHash } from 'node:crypto';
import type { AnyFunction } from './types.js';

/** Modules by the paths of their files. */
export type ModuleCache = Readonly<Record<string, { readonly exports: unknown } | undefined>>;

export const sourceOf = (method: AnyFunction) => Function.prototype.toString.call(method);

function short(text: string, length: number): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, length);
}

/** Files whose functions only make values, classes of errors, sockets or clients of their own: no order rests on them. */
const LEFT_OUT =
  /^(?:index|ScanStream|constants\/.*|errors\/.*|connectors\/(?!Standalone).*|cluster\/(?:\w+Options|\w*Subscriber\w*)|redis\/\w+Options|utils\/(?!Commander|index|arg|debug).*)\.js$/;

/**
 * Of a package's modules, as they were loaded: a hook may have changed what is on disk. Not of those without exports,
 * which hold types.
 *
 * @param folder - of its JavaScript, as it begins the paths of the files.
 */
export function filesDigest(folder: string, cache: ModuleCache): string {
  const lines: string[] = [];
  for (const [path, module] of Object.entries(cache)) {
    if (!path.startsWith(folder)) continue;
    const file = path.slice(folder.length).replaceAll('\\', '/');
    if (LEFT_OUT.test(file) || Object.keys(module?.exports ?? {}).length === 0) continue;
    lines.push(`${file} ${moduleHash(path, module?.exports)}`);
  }
  return short(lines.sort().join('\n'), 16);
}

/** Of one module. */
export function fileDigest(path: string, exported: unknown): string {
  return short(moduleHash(path, exported), 16);
}

/** Of its whole text, or where V8 does not tell that, the functions that it exports. */
function moduleHash(path: string, exported: unknown): string {
  // The shortest first: V8 compiles what is called.
  const functions = [...functionsOf(exported)].sort((one, other) => sourceOf(one).length - sourceOf(other).length);
  return loadedHash(path, functions) ?? functions.map(sourceOf).join('\n');
}

/** What a module exports, and the methods of its classes. */
function* functionsOf(exported: unknown): Generator<AnyFunction> {
  for (const value of [exported, ...valuesOf(exported)]) {
    if (typeof value !== 'function') continue;
    yield value as AnyFunction;
    for (const method of valuesOf(value.prototype)) if (typeof method === 'function') yield method as AnyFunction;
  }
}

function* valuesOf(object: unknown): Generator<unknown> {
  for (const name of Object.getOwnPropertyNames(object ?? {})) {
    const { value, get } = Object.getOwnPropertyDescriptor(object, name) ?? {};
    yield value ?? get;
  }
}

/**
 * Functions that first look at a property of `this` or of their first parameter, or return one that does. Called with an
 * object that throws then, they do nothing else.
 */
const LOOKS_FIRST =
  /^(?:static )?(?:function )?\w* ?\((\w*)[^(){}]*\) \{(?:\s|\/\/.*)*(?:return function \(\w*\) \{\s*)?(?:(?:if|while) \(!?(?:typeof )?|for \(let i = 0; i < |return !?|(?:const|let) (?:\w+|\{[^{}]*\}) = )?(?:if \(!shouldTrace\(\w+\)\)\s*return )?(?:__classPrivateField[GS]et\()?(?:this|\1)(?:[.,(]|(?<=\} = \w+);)/;

const THROWS = () => {
  throw new Error();
};
const TRAP = new Proxy(THROWS, { get: THROWS, set: THROWS });

interface CallSite {
  getFileName(): string | null;
  getScriptHash(): string;
}

/**
 * SHA-256 of the text from which a module was compiled. V8 tells it of functions on the stack of an error, so one of the
 * module's is called that does nothing but throw one. Undefined if there is none.
 */
function loadedHash(path: string, functions: readonly AnyFunction[]): string | undefined {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = 5;
  Error.prepareStackTrace = (_, sites) => sites;
  try {
    for (const method of functions) {
      if (!LOOKS_FIRST.test(sourceOf(method))) continue;
      try {
        (method.call(TRAP, TRAP) as AnyFunction | undefined)?.call(undefined);
      } catch (error) {
        const sites = (error as { stack: CallSite[] }).stack;
        const site = sites.find((candidate) => candidate.getFileName() === path);
        if (site !== undefined) return site.getScriptHash();
      }
    }
    return undefined;
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

/** What bundlers and minifiers leave alone: property names, private ones too, and the words of asynchronous functions. */
const NAMES = /(?<!\.)\??\.#?([A-Za-z_$][\w$]*)|#\w+|\b(?:async|await)\b/g;
const COMMENTS = /\/\*[\s\S]*?\*\/|(?<=^|[^:'"`])\/\/.*$/gm;
/** A bundler's name of an import; what webpack and rollup put into `Pipeline#exec` with a function of that file. */
const UNRELIABLE = ['.default', '.length', '._groupsBySlot'];

/** How often each name occurs in a method, and how many parameters it has, in four characters. */
export function methodDigest(name: string, method: AnyFunction): string {
  const counts: Record<string, number> = {};
  for (const [found] of sourceOf(method).replaceAll(COMMENTS, '').matchAll(NAMES)) {
    const word = found.replace('?', '');
    if (!UNRELIABLE.includes(word)) counts[word] = (counts[word] ?? 0) + 1;
  }
  return short(`${name} ${method.length} ${Object.entries(counts).sort().join()}`, 4);
}
