import type { OpenVariant } from '../variants/clients.js';
import type { ClientOptions } from '../variants/protocol.js';

export interface TaskContext {
  readonly client: OpenVariant['client'];
  /** One more client of the same kind; the task closes it. */
  open(options?: ClientOptions): Promise<OpenVariant>;
  readonly prefix: string;
}

/** Runs something with `count` clients of the variant's kind. */
export async function withClients<T>(
  { client, open }: TaskContext,
  count: number,
  run: (clients: readonly OpenVariant['client'][]) => Promise<T>,
): Promise<T> {
  const more = await Promise.all(Array.from({ length: count - 1 }, () => open()));
  const result = await run([client, ...more.map((one) => one.client)]);
  for (const { close } of more) close();
  return result;
}
