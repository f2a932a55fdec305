import type { HostCommand } from '../host/types.js';
import { wireName } from './read-names.js';

/** A sequence of commands; the first argument of each is its name. */
export interface Requests {
  /** Moves on to the next command, if there is one. */
  next(): boolean;
  /** Number of its arguments, the name included. */
  readonly count: number;
  text(index: number): string;
}

/** The commands of a pipeline or transaction. */
export class PipelineRequests implements Requests {
  #index = -1;

  constructor(readonly commands: readonly HostCommand[]) {}

  next(): boolean {
    this.#index += 1;
    return this.#index < this.commands.length;
  }

  get count(): number {
    return this.#command.args.length + 1;
  }

  text(index: number): string {
    const { name, args } = this.#command;
    return index === 0 ? name : wireName(args[index - 1]);
  }

  get #command(): HostCommand {
    return this.commands[this.#index] as HostCommand;
  }
}
