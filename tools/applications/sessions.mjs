/** Express with sessions in Redis: 20 browsers, each with ten requests one after the other. */
import { once } from 'node:events';
import { RedisStore } from 'connect-redis';
import express from 'express';
import session from 'express-session';
import { Redis } from 'ioredis';

const client = new Redis(process.env.REDIS_URL);
const app = express();
app.use(session({ store: new RedisStore({ client }), secret: 'secret', resave: false, saveUninitialized: true }));
app.get('/', (request, response) => {
  request.session.views = (request.session.views ?? 0) + 1;
  response.json(request.session.views);
});
app.get('/leave', (request, response, next) => {
  request.session.destroy((error) => (error ? next(error) : response.json('left')));
});
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;

async function browse() {
  let cookie = '';
  const seen = [];
  for (const path of [...Array(8).fill('/'), '/leave', '/']) {
    const response = await fetch(origin + path, { headers: { cookie } });
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    seen.push(await response.json());
  }
  return seen;
}

const browsers = await Promise.all(Array.from({ length: 20 }, browse));
console.log(JSON.stringify({ browsers, sessions: await client.dbsize() }));
server.close();
server.closeAllConnections();
await client.quit();
