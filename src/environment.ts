import { CODES, describe, warnOnce, wrongOption } from './errors.js';

export const VARIABLE = 'IOREDIS_COALESCE';

/**
 * The setting in the environment variable; commas may separate words, as in `stats,cork`:
 *
 * - `off`: every client stays plain, in every entry of this package;
 * - `cork`: every client gets the cork, and none the fast path;
 * - `stats`: one line per client is printed when the process ends and on SIGUSR2;
 * - `advise`, `advise:json`: likewise the places where round trips wait in line needlessly, as text or JSON; `verbose`
 *   adds those where they have to;
 * - an object: options of the clients that `ioredis-coalesce/register` coalesces, not checked yet.
 */
interface Setting {
  readonly mode: 'off' | 'cork' | object;
  readonly reports?: (typeof REPORTS)[number] | undefined;
  readonly verbose?: boolean;
}

const REPORTS = ['stats', 'advise', 'advise:json'] as const;
const ONE_WORD = new Map<string, 'off' | object>([
  ...['off', '0', 'false', 'no'].map((value) => [value, 'off'] as const),
  ...['', 'on', '1', 'true', 'yes'].map((value) => [value, {}] as const),
]);

/** The setting of this process, read once when this package is loaded. */
export const { mode: environment, reports, verbose = false } = parse(process.env[VARIABLE]);

/** Any other value leaves clients plain, with a warning: it may be a misspelled `off`, set in an emergency. */
function parse(text = ''): Setting {
  const value = text.trim();
  const mode = ONE_WORD.get(value.toLowerCase());
  if (mode !== undefined) return { mode };
  const words = value.toLowerCase().split(/\s*,\s*/);
  const known = ['cork', 'verbose', ...REPORTS];
  const [report, ...others] = REPORTS.filter((name) => words.includes(name));
  const isVerbose = words.includes('verbose');
  if (words.every((word) => known.includes(word)) && others.length === 0 && (!isVerbose || report === 'advise')) {
    return { mode: words.includes('cork') ? 'cork' : {}, reports: report, verbose: isVerbose };
  }
  try {
    const options: unknown = JSON.parse(value);
    if (typeof options === 'object' && options !== null && !Array.isArray(options)) return { mode: options };
  } catch {}
  warnEnvironment(
    wrongOption(
      `the environment variable ${VARIABLE} must be off, cork, on, stats, advise, or a JSON object of options such as ` +
        `{"maxInFlight":5000}, got ${describe(text)}`,
    ),
  );
  return { mode: 'off' };
}

export function warnEnvironment({ message }: Error): void {
  warnOnce(CODES.ENVIRONMENT, `${message}; clients stay plain`);
}
