import { describe, wrongOption } from './errors.js';

/** What the environment variable `IOREDIS_COALESCE` asks for. */
export interface Environment {
  /** `off`: every client stays plain, in every entry of this package. */
  readonly off: boolean;
  /** `stats`: one line per client is printed when the process exits and on SIGUSR2. */
  readonly stats: boolean;
  /** Options of the clients that `ioredis-coalesce/register` coalesces, not checked yet. */
  readonly options: object | undefined;
}

export const VARIABLE = 'IOREDIS_COALESCE';

/** @throws {TypeError} `COALESCE_ERR_OPTION` for a text that is neither empty, `off`, `stats` nor a JSON object. */
export function parseEnvironment(text: string | undefined): Environment {
  const value = (text ?? '').trim();
  if (value === '' || value === 'off' || value === 'stats') {
    return { off: value === 'off', stats: value === 'stats', options: undefined };
  }
  try {
    const options: unknown = JSON.parse(value);
    if (typeof options === 'object' && options !== null && !Array.isArray(options)) {
      return { off: false, stats: false, options };
    }
  } catch {}
  throw wrongOption(
    `the environment variable ${VARIABLE} must be "off", "stats", or a JSON object of options such as ` +
      `{"maxInFlight":5000}, got ${describe(text)}`,
  );
}

/** Read once, when this package is loaded. */
export const environment = parseEnvironment(process.env[VARIABLE]);
