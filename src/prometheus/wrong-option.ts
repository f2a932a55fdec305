import { CODES, withCode } from '../errors.js';

export function wrongOption(message: string): Error {
  return withCode(new TypeError(`ioredis-coalesce: ${message}`), CODES.OPTION);
}
