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

const MOST_FRAMES = 40;
const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const CLIENT_PACKAGE = /^(?:(?:ioredis|iovalkey)\d*|ioredis-coalesce|standard-as-callback)$/;
const FRAME = /^\s*at (?:async )?(?:(.*) \()?(.+?)(:\d+):\d+\)?$/;

/** The first frame of user code, and the package that it calls, if another one than the client's issues the command. */
export function siteOf(command: string): Site | undefined {
  let ownFolder: string | undefined;
  let by = '';
  for (const frame of stackTrace().split('\n')) {
    const [, name = '', path = '', line = ''] = FRAME.exec(frame) ?? [];
    if (path === '' || /^node:|<anonymous>/.test(path)) continue;
    // The first frame is this function's: as it is built, all of this package is in its folder.
    ownFolder ??= path.slice(0, -basename(path).length).replace(/(?<=src[\\/])advise[\\/]$/, '');
    if (path.startsWith(ownFolder)) continue;
    const inPackage = [...path.matchAll(PACKAGE)].at(-1)?.[1];
    if (inPackage === undefined) {
      const file = path.startsWith('file:') ? fileURLToPath(path) : path;
      const functionName = name.includes('<anonymous>') ? '' : name.replace(/^Object\./, '');
      return { place: relative('', file) + line, functionName, command: command + by };
    }
    if (by === '' && !CLIENT_PACKAGE.test(inPackage)) by = ` by ${inPackage}`;
  }
  return undefined;
}

/** The present stack; empty where the process prepares stack traces in a way that fails, or gives no text. */
function stackTrace(): string {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', MOST_FRAMES);
  try {
    const { stack } = new Error();
    return typeof stack === 'string' ? stack : '';
  } catch {
    return '';
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}
