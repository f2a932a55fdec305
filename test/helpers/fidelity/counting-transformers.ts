import { Command as Command6 } from 'ioredis';
import { Command as Command5 } from 'ioredis5';
import { Command as ValkeyCommand } from 'iovalkey';
import type { Host } from './variants.js';

type Transform = (args: unknown[]) => unknown[];
interface CommandClass {
  setArgumentTransformer(name: string, transform: Transform): void;
  setReplyTransformer(name: string, transform: (reply: unknown) => unknown): void;
  readonly _transformer: Readonly<Record<'argument' | 'reply', Record<string, unknown>>>;
}

export const COMMANDS: Record<Host, CommandClass> = {
  ioredis6: Command6 as unknown as CommandClass,
  ioredis5: Command5 as unknown as CommandClass,
  iovalkey: ValkeyCommand as unknown as CommandClass,
};

/** Commands that the hosts transform nothing of, on the fast path's list but for the last. */
const NAMES = ['get', 'set', 'append', 'rpush', 'hget', 'wait'];

/** Registers argument transformers that change nothing and count how often they are called, until `remove`. */
export class CountingTransformers {
  readonly calls: Record<string, number> = {};

  constructor(readonly host: Host) {
    for (const name of NAMES) {
      COMMANDS[host].setArgumentTransformer(name, (args) => {
        this.calls[name] = (this.calls[name] ?? 0) + 1;
        return [...args];
      });
    }
  }

  remove(): void {
    for (const name of NAMES) Reflect.deleteProperty(COMMANDS[this.host]._transformer.argument, name);
  }
}
