import { CODES, describe, warnOnce, wrongOption } from './errors.js';

export const VARIABLE = 'IOREDIS_COALESCE';

/**
 * What the environment variable asks for:
 *
 * - `off`: every client stays plain, in every entry of this package;
 * - `cork`: every client gets the cork, and none the fast path;
 * - `stats`: one line per client is printed when the process exits and on SIGUSR2;
 * - `advise`, `advise:json`: so are the places where round trips wait in line for each other, as text or JSON;
 * - an object: options of the clients that `ioredis-coalesce/register` coalesces, not checked yet.
 */
type Environment = 'off' | 'cork' | Report | object;
type Report = (typeof REPORTS)[number];

const REPORTS = ['stats', 'advise', 'advise:json'] as const;

const VALUES = new Map<string, Environment>([
  ...['off', '0', 'false', 'no'].map((value) => [value, 'off'] as const),
  ...['', 'on', '1', 'true', 'yes'].map((value) => [value, {}] as const),
  ...(['cork', ...REPORTS] as const).map((value) => [value, value] as const),
]);

/** The setting of this process, read once, when this package is loaded. */
export const environment = parse(process.env[VARIABLE]);
export const reports = REPORTS.includes(environment as Report);

/** A value that is none of them warns and leaves clients plain: it may be a misspelled `off`, set in an emergency. */
function parse(text = ''): Environment {
  const value = text.trim();
  const known = VALUES.get(value.toLowerCase());
  if (known !== undefined) return known;
  try {
    const options: unknown = JSON.parse(value);
    if (typeof options === 'object' && options !== null && !Array.isArray(options)) return options;
  } catch {}
  warnEnvironment(
    wrongOption(
      `the environment variable ${VARIABLE} must be off, cork, on, stats, advise, or a JSON object of options such as ` +
        `{"maxInFlight":5000}, got ${describe(text)}`,
    ),
  );
  return 'off';
}

export function warnEnvironment({ message }: Error): void {
  warnOnce(CODES.ENVIRONMENT, `${message}; clients stay plain`);
}
