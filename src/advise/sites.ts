/** Finds the user code that issues a command, by stack traces. */
import { basename, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A place in user code that issues commands. */
export interface Site {
  /** `src/cart.ts:42`. */
  readonly place: string;
  /** `loadItems`; empty where it has no name. */
  readonly functionName: string;
  /** `get`, or `get by connect-redis` where a package issues it. */
  readonly command: string;
}

const MAX_FRAMES = 40;
const MAX_CACHED = 1_000;
const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const CLIENT_PACKAGE = /^(?:(?:ioredis|iovalkey)\d*|ioredis-coalesce|standard-as-callback)$/;
const FRAME = /^\s*at (?:async )?(?:(.*) \()?(.+?)(:\d+):\d+\)?$/;
const NOT_A_FILE = /^node:|<anonymous>/;

/** Sites by the running frame's position, since source maps are slow and should be read only once per site. */
const cache = new Map<string, Site>();

/** The first frame of user code, and the package that it has called, unless that is the client's. */
export function siteOf(command: string): Site | undefined {
  const raw = stackOf((_, frames) => frames);
  const running = Array.isArray(raw) ? (raw as NodeJS.CallSite[]) : [];
  const path = (frame: NodeJS.CallSite) => frame.getFileName() ?? '';
  const found = userFrame(running, path);
  const at = found && running[found.index];
  const key = at && `${path(at)}:${at.getLineNumber()}:${at.getColumnNumber()} ${command}${found.by}`;
  const known = key === undefined ? undefined : cache.get(key);
  if (known !== undefined) return known;
  const text = stackOf();
  // The first line is the error's.
  const lines = typeof text === 'string' ? text.split('\n').slice(1) : [];
  const shown = lines.map((line) => FRAME.exec(line) ?? []);
  const mapped = userFrame(shown, ([, , file = '']) => file);
  if (mapped === undefined) return undefined;
  const [, name = '', file = '', line = ''] = shown[mapped.index] ?? [];
  const functionName = name.includes('<anonymous>') ? '' : name.replace(/^Object\./, '');
  const site = { place: fileOf(file) + line, functionName, command: command + mapped.by };
  // In a bundle, the source map may select another frame, which the running frames do not identify.
  const isSame = mapped.index === found?.index && mapped.by === found.by;
  if (key !== undefined && isSame && cache.size < MAX_CACHED) cache.set(key, site);
  return site;
}

function userFrame<F>(frames: readonly F[], pathOf: (frame: F) => string): { index: number; by: string } | undefined {
  let ownFolder: string | undefined;
  let by = '';
  for (const [index, frame] of frames.entries()) {
    const path = pathOf(frame);
    if (path === '' || NOT_A_FILE.test(path)) continue;
    // The first frame is in this file. In a build, the whole package is in its folder.
    ownFolder ??= path.slice(0, -basename(path).length).replace(/(?<=src[\\/])advise[\\/]$/, '');
    if (path.startsWith(ownFolder)) continue;
    const inPackage = path.includes('node_modules') ? [...path.matchAll(PACKAGE)].at(-1)?.[1] : undefined;
    if (inPackage === undefined) return { index, by };
    if (by === '' && !CLIENT_PACKAGE.test(inPackage)) by = ` by ${inPackage}`;
  }
  return undefined;
}

/** The path to show; unchanged for odd names, or if the working directory no longer exists. */
function fileOf(path: string): string {
  try {
    return relative('', path.startsWith('file:') ? fileURLToPath(path) : path);
  } catch {
    return path;
  }
}

/** The current stack; undefined if the process's own `prepareStackTrace` throws. */
function stackOf(prepare?: typeof Error.prepareStackTrace): unknown {
  const restore = [setOnError('stackTraceLimit', MAX_FRAMES)];
  if (prepare !== undefined) restore.push(setOnError('prepareStackTrace', prepare));
  try {
    return new Error().stack;
  } catch {
    return undefined;
  } finally {
    for (const each of restore) each();
  }
}

/** Returns a function that restores the property. Leaves a property that is read-only, or has a user's setter. */
function setOnError(name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(Error, name);
  if (before !== undefined && !before.writable) return () => {};
  const isSet = Reflect.set(Error, name, value);
  if (before === undefined) return () => isSet && Reflect.deleteProperty(Error, name);
  return () => Reflect.set(Error, name, before.value);
}
