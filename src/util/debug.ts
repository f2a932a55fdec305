import debug from 'debug';

/**
 * `DEBUG=ioredis-coalesce:*` prints attachments, flushes and fall-throughs, through the package `debug`, as ioredis
 * does. No arguments of commands are printed.
 */
export const debugAttach = debug('ioredis-coalesce:attach');
export const debugFlush = debug('ioredis-coalesce:flush');
export const debugFallThrough = debug('ioredis-coalesce:fall-through');
