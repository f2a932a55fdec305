import { CLIENT_KINDS, type ClientKind } from './redis.js';

export const DEFAULT_PREFIX = 'shop:';
export const DEFAULT_PRODUCTS = 1000;

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export interface Config {
  /** Without it, a server of our own is started, if that is possible. */
  redisUrl: string | undefined;
  host: string;
  port: number;
  client: ClientKind;
  logLevel: string;
  /** The prefix of every key of the shop. */
  prefix: string;
  products: number;
  /** Requests per client and minute. */
  rateLimit: number;
  /** In seconds. */
  sessionLife: number;
  /** Whether `/` serves the live page. */
  livePage: boolean;
}

/** Reads the environment; its errors name the variable, what was expected and what was given. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return {
    redisUrl: env.REDIS_URL ? redisUrl(env.REDIS_URL) : undefined,
    host: env.HOST || '127.0.0.1',
    port: wholeNumber('PORT', env.PORT || '3000', 0, 65_535),
    client: oneOf('REDIS_CLIENT', env.REDIS_CLIENT || 'coalesced', CLIENT_KINDS),
    logLevel: oneOf('LOG_LEVEL', env.LOG_LEVEL || 'info', LOG_LEVELS),
    prefix: env.SEED_PREFIX || DEFAULT_PREFIX,
    products: wholeNumber('SEED_PRODUCTS', env.SEED_PRODUCTS || String(DEFAULT_PRODUCTS), 1, 1_000_000),
    rateLimit: wholeNumber('RATE_LIMIT', env.RATE_LIMIT || '600', 1, 1_000_000),
    sessionLife: wholeNumber('SESSION_LIFE', env.SESSION_LIFE || '1800', 1, 31_536_000),
    livePage: onOrOff('LIVE_PAGE', env.LIVE_PAGE || 'on'),
  };
}

function redisUrl(text: string): string {
  if (!URL.canParse(text) || !/^rediss?:$/.test(new URL(text).protocol)) {
    throw new Error(`REDIS_URL must be a redis:// or rediss:// URL, got "${text}"`);
  }
  return text;
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < min || number > max) {
    throw new Error(`${name} must be a whole number from ${min} to ${max}, got "${text}"`);
  }
  return number;
}

function onOrOff(name: string, text: string): boolean {
  return oneOf(name, text, ['on', 'off']) === 'on';
}

function oneOf<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === text);
  if (found === undefined) {
    throw new Error(`${name} must be one of ${allowed.join(', ')}, got "${text}"`);
  }
  return found;
}
