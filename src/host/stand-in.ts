/** Stand-ins for a client in tests: ioredis-mock, mocks of jest, vitest and sinon, hand-written fakes. */

/**
 * Whether `value` is used like a client and has no connection: it has commands, but no `sendCommand`, or one that a
 * mocking library has made. Clients of other packages have a `sendCommand` (node-redis), or neither `quit` nor
 * `disconnect`.
 */
export function isStandIn(value: object): boolean {
  const { get, set, sendCommand, quit, disconnect } = value as Record<string, unknown>;
  if (isMock(sendCommand) || isMock(get)) return true;
  return [get, set, quit ?? disconnect].every((method) => typeof method === 'function') && sendCommand === undefined;
}

/** By the marks of jest and vitest (`_isMockFunction`), sinon (`isSinonProxy`) and `node:test` (`mock.calls`). */
function isMock(method: unknown): boolean {
  if (typeof method !== 'function') return false;
  const { _isMockFunction, isSinonProxy, mock } = method as {
    _isMockFunction?: unknown;
    isSinonProxy?: unknown;
    mock?: { calls?: unknown };
  };
  return _isMockFunction === true || isSinonProxy === true || Array.isArray(mock?.calls);
}
