/**
 * Clients of every copy of the host in this process, as they are made.
 *
 * Host: both packages are CommonJS, so `import` loads their files by the same `Module#_compile` as `require()`, under
 * every version of Node from 20 on and beside tsx and the hooks of tracers. The constructors of `Redis` and `Cluster` end
 * in their first `setStatus()`: there the client is whole, and nothing has been sent (`built/Redis.js`,
 * `built/cluster/index.js`). So the classes stay what they are: `instanceof`, statics, subclasses and stubs on prototypes
 * work as before.
 */
import Module from 'node:module';
import type { AnyFunction } from './types.js';

/** Where the classes are in both packages, whatever the folder of the package is called. */
const CLASS_FILE = /[\\/]built[\\/](?:Redis|cluster[\\/]index)\.js$/;

interface HostPrototype {
  setStatus?: AnyFunction;
  sendCommand?: AnyFunction;
}

/** Node: how the text of a CommonJS file becomes a module. Not in its types. */
interface Compiling {
  _compile: (this: { exports: unknown }, content: string, filename: string, ...rest: unknown[]) => unknown;
}

/**
 * Calls `made` with every client and Cluster that is made from now on. It is called within the constructor, so it must
 * not throw.
 */
export function watchClients(made: (client: object) => void): void {
  for (const [file, module] of Object.entries(Module.createRequire(import.meta.url).cache))
    if (module !== undefined) watch(file, module.exports, made);
  const modules = Module.prototype as unknown as Compiling;
  const { _compile } = modules;
  modules._compile = function compile(content, filename, ...rest) {
    const result = _compile.call(this, content, filename, ...rest);
    watch(filename, this.exports, made);
    return result;
  };
}

function watch(file: string, exported: unknown, made: (client: object) => void): void {
  if (!CLASS_FILE.test(file)) return;
  const prototype = (exported as { default?: { prototype?: HostPrototype } } | undefined)?.default?.prototype;
  const { setStatus, sendCommand } = prototype ?? {};
  if (prototype === undefined || typeof setStatus !== 'function' || typeof sendCommand !== 'function') return;
  const seen = new WeakSet<object>();
  prototype.setStatus = function (...args) {
    const result = setStatus.apply(this, args);
    if (!seen.has(this as object)) {
      seen.add(this as object);
      made(this as object);
    }
    return result;
  };
}
