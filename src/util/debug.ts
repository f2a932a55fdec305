import debug from 'debug';

/**
 * `DEBUG=ioredis-coalesce:*` prints what happens, through the package that ioredis prints through. No arguments of
 * commands are printed.
 */
export const debugAttach = debug('ioredis-coalesce:attach');
export const debugFlush = debug('ioredis-coalesce:flush');
export const debugFallThrough = debug('ioredis-coalesce:fall-through');
