import { describe, wrongOption } from './errors.js';

export const VARIABLE = 'IOREDIS_COALESCE';

/**
 * What the environment variable asks for, read once, when this package is loaded:
 *
 * - `off`: every client stays plain, in every entry of this package;
 * - `stats`: one line per client is printed when the process exits and on SIGUSR2;
 * - an object: options of the clients that `ioredis-coalesce/register` coalesces, not checked yet.
 */
export const environment = parse(process.env[VARIABLE]);

/** @throws {TypeError} `COALESCE_ERR_OPTION` for a text that is neither empty, `off`, `stats` nor a JSON object. */
function parse(text = ''): 'off' | 'stats' | object {
  const value = text.trim();
  if (value === 'off' || value === 'stats') return value;
  try {
    const options: unknown = JSON.parse(value || '{}');
    if (typeof options === 'object' && options !== null && !Array.isArray(options)) return options;
  } catch {}
  throw wrongOption(
    `the environment variable ${VARIABLE} must be "off", "stats", or a JSON object of options such as ` +
      `{"maxInFlight":5000}, got ${describe(text)}`,
  );
}
