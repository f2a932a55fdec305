import type { Arguments } from './effects.js';

const NONE: readonly unknown[] = [];

/** A key's name in invalidations by the server, decoded as UTF-8. */
export function wireName(argument: unknown): string {
  if (argument instanceof Buffer) return argument.utf8Slice(0, argument.length);
  return String(argument).toWellFormed();
}

/** The arguments of one command at a time, which `of` sets. */
export class CallArguments implements Arguments {
  #name = '';
  #leading: readonly unknown[] = NONE;
  #sent: unknown;
  count = 0;

  /**
   * @param sent - the arguments; a single one is not in an array.
   * @param leading - the arguments between the name and these.
   */
  of(name: string, sent: unknown, leading = NONE): this {
    this.#name = name;
    this.#sent = sent;
    this.#leading = leading;
    this.count = 1 + leading.length + (Array.isArray(sent) ? sent.length : 1);
    return this;
  }

  text(index: number): string {
    if (index === 0) return this.#name;
    if (index >= this.count) return '';
    const own = index - 1 - this.#leading.length;
    if (own < 0) return wireName(this.#leading[index - 1]);
    return wireName(Array.isArray(this.#sent) ? this.#sent[own] : this.#sent);
  }
}
