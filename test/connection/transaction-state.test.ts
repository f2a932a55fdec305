import { describe, expect, it } from 'vitest';
import { effectOf } from '../../src/commands/effects.js';
import { TransactionState } from '../../src/core/transaction-state.js';
import type { HostQueue } from '../../src/host/types.js';

const effectOfWords = (words: string) => {
  const args = words.split(' ');
  return effectOf({ count: args.length, text: (index) => args[index] ?? '' });
};

function queueOf(...names: string[]): HostQueue {
  const items = names.map((name) => ({ command: { name, args: [] } }));
  return { length: items.length, peekAt: (index: number) => items[index] } as unknown as HostQueue;
}

describe('TransactionState', () => {
  it.each([
    [[], false],
    [['multi'], true],
    [['MULTI'], true],
    [['multi', 'get a'], true],
    [['multi', 'get a', 'exec'], false],
    [['multi', 'discard'], false],
    [['multi', 'reset'], false],
    [['multi', 'discard x'], true],
    [['multi', 'RESET x'], true],
    [['multi x'], false],
    [['multi', 'exec x'], false],
    [['exec', 'Multi'], true],
    [['get multi', 'multiply', 'executor'], false],
  ])('after %j a transaction is open: %s', (commands, open) => {
    const transaction = new TransactionState();
    for (const command of commands) transaction.issued(effectOfWords(command));
    expect([transaction.open, transaction.begun]).toEqual([open, open]);
  });

  it.each([
    ['client reply off', true],
    ['CLIENT REPLY SKIP', true],
    ['client reply on', false],
    ['client setname off', false],
    ['get client', false],
  ])('%j switches replies off: %s', (command, off) => {
    expect(effectOfWords(command) === 'no replies').toBe(off);
  });

  it('ends WATCH with the transaction', () => {
    const transaction = new TransactionState();
    transaction.issued('watch');
    expect(transaction.watching).toBe(true);
    transaction.issued('multi');
    transaction.issued('discard');
    expect(transaction.watching).toBe(false);
  });

  describe('on a connection in use', () => {
    it.each([
      [['watch', 'unwatch'], false],
      [['unwatch', 'watch', 'get'], true],
      [['watch', 'multi', 'exec'], false],
      [['multi', 'exec', 'watch'], true],
    ])('whose queue holds %j, keys are watched afterwards: %s', (names, watching) => {
      expect(new TransactionState(queueOf(...names), true).watching).toBe(watching);
    });

    it.each([
      [['get', 'MULTI', 'get'], true, false],
      [['multi', 'exec'], false, false],
      [['get'], true, true],
      [[], true, true],
    ])('whose queue holds %j, a transaction counts as open: %s, unknown: %s', (names, open, unknown) => {
      const transaction = new TransactionState(queueOf(...names), true);
      expect([transaction.open, transaction.unknown]).toEqual([open, unknown]);
    });

    it.each([
      ['-ERR WATCH inside MULTI is not allowed', true],
      ['-', true],
      ['+QUEUED', true],
      ['+QU', true],
      ['+OK', false],
      ['$3', false],
      ['_', false],
    ])('after the reply %j one counts as open: %s', (line, open) => {
      const transaction = new TransactionState(queueOf(), true);
      transaction.replied(line);
      expect(transaction.open).toBe(open);
    });

    it('whose queue has shown the state, replies change nothing', () => {
      const transaction = new TransactionState(queueOf('multi'), true);
      transaction.replied('+OK');
      expect(transaction.open).toBe(true);
    });
  });

  it('resolves for those that wait for its end', async () => {
    const transaction = new TransactionState();
    expect(transaction.closed()).toBeUndefined();
    transaction.issued('multi');
    const closed = transaction.closed();
    transaction.issued('exec');
    await closed;
    expect(transaction.closed()).toBeUndefined();
  });
});
