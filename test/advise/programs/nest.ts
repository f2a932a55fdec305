/** A Nest app on Express, and a worker thread; run with `IOREDIS_COALESCE=advise`. */
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { isMainThread, Worker } from 'node:worker_threads';
import { Controller, Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import Redis from 'ioredis-coalesce';

const [url = '', prefix = ''] = process.argv.slice(2);
const redis = new Redis(url);

class Carts {
  async total(): Promise<number> {
    await this.#user();
    return redis.llen(`${prefix}cart`);
  }

  async #user(): Promise<unknown> {
    return redis.hgetall(`${prefix}user`);
  }
}

class CartController {
  readonly carts = new Carts();

  async total(): Promise<string> {
    return `${await this.carts.total()}`;
  }
}
// As decorators would do it: the compiler that runs the tests has them in another dialect than Nest.
Controller()(CartController);
const total = Object.getOwnPropertyDescriptor(CartController.prototype, 'total') as PropertyDescriptor;
Get()(CartController.prototype, 'total', total);

async function serve(): Promise<void> {
  await redis.hset(`${prefix}user`, 'name', 'Ada');
  const app = await NestFactory.create({ module: class Shop {}, controllers: [CartController] }, { logger: ['error'] });
  app.use((_request: unknown, _response: unknown, next: (error?: Error | null) => void) => {
    redis.get(`${prefix}session`, () => {
      redis.exists(`${prefix}banned`, (error) => next(error));
    });
  });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`);
  if (response.status !== 200) throw new Error(`${response.status}`);
  await app.close();
}

async function workInThread(): Promise<void> {
  await redis.mset([0, 1, 2, 3].flatMap((job) => [`${prefix}job:${job}`, 'work']));
  for (let job = 0; job < 4; job += 1) await redis.strlen(`${prefix}job:${job}`);
}

if (isMainThread) {
  // Threads do not inherit the hooks of tsx.
  const code = `import('tsx/esm/api').then(({ register }) => register() && import('${import.meta.url}'))`;
  const worker = new Worker(code, { eval: true, argv: [url, prefix] });
  await new Promise((resolve) => worker.once('exit', resolve));
  await serve();
} else await workInThread();
redis.disconnect();
