import type { ServerResponse } from 'node:http';

const HEARTBEAT_MS = 15_000;

/** Server-sent events to every open page. A page opened later gets the latest of the events that describe a state. */
export class Feed {
  readonly #pages = new Set<ServerResponse>();
  readonly #latest = new Map<string, string>();
  readonly #heartbeat = setInterval(() => this.#write(': still here\n\n'), HEARTBEAT_MS);

  add(page: ServerResponse): void {
    page.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    page.write(`retry: 1000\n\n${[...this.#latest.values()].join('')}`);
    this.#pages.add(page);
    page.on('close', () => this.#pages.delete(page));
  }

  /** An event for pages that are open now. */
  tell(event: string, data: object): void {
    this.#write(textOf(event, data));
  }

  /** A state, valid until the next of its name. */
  set(event: string, data: object): void {
    const text = textOf(event, data);
    this.#latest.set(event, text);
    this.#write(text);
  }

  close(): void {
    clearInterval(this.#heartbeat);
    for (const page of this.#pages) {
      page.end();
    }
  }

  #write(text: string): void {
    for (const page of this.#pages) {
      page.write(text);
    }
  }
}

function textOf(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
