import type { Redis } from 'ioredis';

/** User and system time of the server so far, in microseconds. */
export async function readServerCpuUs(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  return (numberIn(info, 'used_cpu_user') + numberIn(info, 'used_cpu_sys')) * 1e6;
}

/** Name and version. */
export async function readServerVersion(redis: Redis): Promise<string> {
  const info = await redis.info('server');
  const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
  return valkey ? `Valkey ${valkey}` : `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? '(unknown version)'}`;
}

function numberIn(info: string, name: string): number {
  const text = new RegExp(`^${name}:(.+)$`, 'm').exec(info)?.[1];
  const value = Number(text);
  if (text === undefined || !Number.isFinite(value)) {
    throw new Error(`expected a number for ${name} in INFO cpu, got ${text}`);
  }
  return value;
}
