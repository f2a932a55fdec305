import fastifyRedis from '@fastify/redis';
import { type FastifyInstance, fastify } from 'fastify';

type Product = { Params: { id: string }; Body: { name: string; price: number } };

/** A small shop, as it was before this package. */
export function buildApp(redisOptions: { url: string; keyPrefix: string }): FastifyInstance {
  const app = fastify();
  app.register(fastifyRedis, redisOptions);

  app.put<Product>('/products/:id', async ({ params: { id }, body }) => {
    const fields = await app.redis.hset(`product:${id}`, { name: body.name, price: body.price });
    await app.redis.zadd('products', body.price, id.toString());
    return { id, fields };
  });

  app.get<Product>('/products/:id', async ({ params: { id } }, reply) => {
    const [product, views] = await Promise.all([
      app.redis.hgetall(`product:${id}`),
      app.redis.incr(`views:${id}`),
      app.redis.expire(`views:${id}`, 60),
    ]);
    if (Object.keys(product).length === 0) return reply.code(404).send({ error: 'no such product' });
    return { ...product, views };
  });

  app.get('/products', async () => app.redis.zrange('products', '0', '-1'));

  app.post<{ Params: { id: string }; Body: { product: string } }>('/carts/:id', async ({ params, body }) => {
    const results = await app.redis
      .multi()
      .sadd(`cart:${params.id}`, body.product)
      .expire(`cart:${params.id}`, 60)
      .exec();
    return results?.map(([error, value]) => error?.message ?? value);
  });

  app.get<{ Params: { id: string } }>('/carts/:id', async ({ params: { id } }) => {
    return (await app.redis.smembers(`cart:${id}`)).sort();
  });

  app.post<Product>('/products/:id/broken', async ({ params: { id } }) => app.redis.incr(`product:${id}`));

  return app;
}
