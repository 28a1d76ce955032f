// Compatibility cases with nsqjs 0.13.0 against a running NSQ V2 server on this machine.
//
//   cases.js cases  --tcp HOST:PORT --http HOST:PORT [--only NAME,...] [--snappy] [--deflate] [--tls-ca F --tls-cert F --tls-key F]
//                   [--auth-secret S] [--nsqd]    the last: the server is nsqd, which samples by chance
//   cases.js lookup --lookup HOST:PORT --topic T --count N    finds the server by a nsqlookupd, consumes and prints N bodies
//
// One line per case: `ok NAME (seconds)` or `FAIL NAME: why`. All cases run side by side, each on a Topic of its own.
'use strict';
const fs = require('fs');
const net = require('net');
const { Reader, Writer } = require('nsqjs');

class Failure extends Error {}
const need = (condition, why) => {
  if (!condition) throw new Failure(why);
};
const patience = 60000; // ms; only ends what hangs: a machine may be busy, or stand still for seconds
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const bodies = (count) => Array.from({ length: count }, (_, i) => `message ${String(i).padStart(5, '0')}`);

function parse(argv) {
  const flags = {};
  for (let i = 0; i < argv.length; i++) {
    const name = argv[i].replace(/^--/, '');
    flags[name] = ['snappy', 'deflate', 'nsqd'].includes(name) ? true : argv[++i];
  }
  return flags;
}

// What every Reader and Writer of this run is given.
function transport(flags) {
  const options = { heartbeatInterval: 2 };
  if (flags.snappy) options.snappy = true;
  if (flags.deflate) options.deflate = true;
  if (flags['auth-secret']) options.authSecret = flags['auth-secret'];
  if (flags['tls-ca']) {
    Object.assign(options, { tls: true, tlsVerification: true, ca: fs.readFileSync(flags['tls-ca']) });
    if (flags['tls-cert']) Object.assign(options, { cert: fs.readFileSync(flags['tls-cert']), key: fs.readFileSync(flags['tls-key']) });
  }
  return options;
}

class Case {
  constructor(name, flags) {
    this.topic = `js-${name}.${process.pid}`;
    this.flags = flags;
    this.over = transport(flags);
    this.seen = {};
    this.errors = [];
    this.open = [];
  }

  writer(settings = {}) {
    const [host, port] = this.flags.tcp.split(':');
    const writer = new Writer(host, Number(port), { ...this.over, ...settings });
    this.open.push(writer);
    return new Promise((ready, failed) => {
      writer.on('ready', () => ready(writer));
      writer.on('closed', () => failed(new Failure('writer: closed')));
      writer.on('error', (error) => {
        this.errors.push(String(error));
        failed(new Failure(`writer: ${error}`));
      });
      writer.connect();
    });
  }

  publish(writer, message) {
    return new Promise((done, failed) => writer.publish(this.topic, message, (error) => (error ? failed(error) : done())));
  }

  defer(writer, message, ms) {
    return new Promise((done, failed) => writer.deferPublish(this.topic, [message], ms, (error) => (error ? failed(error) : done())));
  }

  // `handler(message, seen)` runs for every message; what came is in this.seen[channel].
  async reader(channel, handler, settings = {}) {
    const seen = (this.seen[channel] = this.seen[channel] || []);
    const before = ((await this.stats(channel)) || { client_count: 0 }).client_count;
    const options = { maxInFlight: 100, messageTimeout: 20000, nsqdTCPAddresses: [this.flags.tcp], ...this.over, ...settings };
    const reader = new Reader(this.topic, channel, options);
    reader.on('error', (error) => this.errors.push(String(error)));
    reader.on('message', (message) => {
      seen.push({ id: message.id, body: message.body.toString(), attempts: message.attempts, at: Date.now() });
      handler(message, seen);
    });
    this.open.push(reader);
    reader.connect();
    const wanted = before + options.nsqdTCPAddresses.length;
    await this.until(channel, 'subscribed', (s) => s && s.client_count >= wanted);
    return reader;
  }

  async document() {
    return (await fetch(`http://${this.flags.http}/stats?format=json&topic=${this.topic}`)).json();
  }

  // The Channel's consumer and the Topic's producer have all that was asked for and nothing else: a client goes on without it when it is refused.
  async granted(channel) {
    const { snappy, deflate, 'tls-ca': ca, 'auth-secret': secret } = this.flags;
    const shown = (row) => JSON.stringify(['snappy', 'deflate', 'tls', 'authed'].map((key) => Boolean(row[key])));
    const asked = JSON.stringify([snappy, deflate, ca, secret].map(Boolean));
    const consumers = (await this.stats(channel)).clients.map(shown);
    const producers = (await this.document()).producers.filter((p) => p.pub_counts && p.pub_counts[0].topic === this.topic).map(shown);
    need(consumers.join() === asked && producers.join() === asked, `consumers ${consumers} and producers ${producers} instead of ${asked}`);
  }

  async stats(channel) {
    for (const topic of (await this.document()).topics || []) {
      const found = topic.channels.find((c) => topic.topic_name === this.topic && c.channel_name === channel);
      if (found) return found;
    }
    return null;
  }

  async until(channel, what, holds, limit = patience) {
    for (const end = Date.now() + limit; ; await sleep(20)) {
      const s = await this.stats(channel);
      if (holds(s)) return s;
      need(Date.now() < end, `${what}: not within ${limit} ms, stats ${JSON.stringify(s)}`);
    }
  }

  async messages(channel, count, limit = patience) {
    for (const end = Date.now() + limit; this.seen[channel].length < count; await sleep(5))
      need(Date.now() < end, `${this.seen[channel].length} of ${count} messages within ${limit} ms, errors ${this.errors}`);
    return this.seen[channel];
  }

  drained(channel) {
    return this.until(channel, 'drained', (s) => s && s.depth + s.in_flight_count + s.deferred_count === 0);
  }

  exactly(channel, count) {
    const got = this.seen[channel].map((s) => s.body).sort();
    need(JSON.stringify(got) === JSON.stringify(bodies(count)), `bodies ${JSON.stringify(got).slice(0, 200)}`);
    need(new Set(this.seen[channel].map((s) => s.id)).size === count, 'an id came twice');
  }

  close() {
    for (const each of this.open) each.close();
  }
}

const finish = (message) => message.finish();

async function publishConsumeFinish(c) {
  await c.reader('c', finish);
  const w = await c.writer();
  for (const b of bodies(20)) await c.publish(w, b);
  await c.messages('c', 20);
  c.exactly('c', 20);
  await c.drained('c');
  await c.granted('c');
}

async function multiPublish(c) {
  await c.reader('c', finish);
  await c.publish(await c.writer(), bodies(500));
  await c.messages('c', 500);
  c.exactly('c', 500);
  await c.drained('c');
}

// Its inflater takes a while with these on a busy machine.
async function largeMessage(c) {
  await c.reader('c', finish, { messageTimeout: patience });
  const body = Array.from({ length: 300000 }, (_, i) => String((i * 7919) % 99991)).join(' ');
  await c.publish(await c.writer(), body);
  const [got] = await c.messages('c', 1);
  need(got.body === body, `${got.body.length} bytes instead of ${body.length}`);
}

async function deferredPublish(c) {
  await c.reader('c', finish);
  const started = Date.now();
  await c.defer(await c.writer(), 'message 00000', 300);
  const [got] = await c.messages('c', 1);
  need(got.at - started >= 250 && got.attempts === 1, `after ${got.at - started} ms, attempts ${got.attempts}`);
}

async function requeueWithDelay(c) {
  await c.reader('c', (m) => (m.attempts > 1 ? m.finish() : m.requeue(150, false)));
  await c.publish(await c.writer(), 'again');
  const [first, second] = await c.messages('c', 2);
  need(second.attempts === 2 && second.id === first.id && second.at - first.at >= 145, `second delivery after ${second.at - first.at} ms`);
  const s = await c.drained('c');
  need(s.requeue_count === 1, `stats ${JSON.stringify(s)}`);
}

// The Reader backs off when a message is requeued, and comes back.
async function backoff(c) {
  await c.reader('c', (m) => (m.attempts > 1 ? m.finish() : m.requeue(0)), { maxBackoffDuration: 1 });
  await c.publish(await c.writer(), bodies(10));
  await c.messages('c', 11);
  await c.drained('c');
}

async function touch(c) {
  await c.reader('c', async (m) => {
    for (let i = 0; i < 6; i++) {
      await sleep(1000);
      m.touch();
    }
    m.finish();
  }, { messageTimeout: 4000 });
  await c.publish(await c.writer(), 'slow');
  await c.messages('c', 1);
  const s = await c.drained('c');
  need(c.seen.c.length === 1 && s.timeout_count === 0, `${c.seen.c.length} deliveries, stats ${JSON.stringify(s)}`);
}

async function maxInFlight(c) {
  let held = 0;
  let most = 0;
  await c.reader('c', async (m) => {
    most = Math.max(most, ++held);
    await sleep(20);
    held--;
    m.finish();
  }, { maxInFlight: 2 });
  await c.publish(await c.writer(), bodies(30));
  await c.messages('c', 30);
  need(most === 2, `${most} at once`);
  await c.drained('c');
}

async function fanOut(c) {
  await c.reader('a', finish);
  await c.reader('b', finish);
  await c.publish(await c.writer(), bodies(60));
  for (const channel of ['a', 'b']) {
    await c.messages(channel, 60);
    c.exactly(channel, 60);
  }
}

// Half of the messages exactly (D-09). nsqd draws for each message, 51 % of them, so there it is a band of five deviations.
async function sampling(c) {
  const [count, least, most] = c.flags.nsqd ? [1000, 430, 590] : [100, 50, 50];
  await c.publish(await c.writer(), bodies(count));
  await c.reader('c', finish, { sampleRate: 50 });
  await c.drained('c');
  const got = c.seen.c.length;
  need(got >= least && got <= most && new Set(c.seen.c.map((s) => s.body)).size === got, `${got} of ${count} messages at 50 %`);
}

async function heartbeats(c) {
  await c.reader('c', finish);
  const w = await c.writer();
  await sleep(6000);
  need(c.errors.length === 0, `a silent connection was lost: ${c.errors}`);
  await c.publish(w, 'message 00000');
  await c.messages('c', 1);
}

async function ephemeralChannel(c) {
  const reader = await c.reader('gone#ephemeral', finish);
  await c.publish(await c.writer(), 'message 00000');
  await c.messages('gone#ephemeral', 1);
  reader.close();
  await c.until('gone#ephemeral', 'channel gone', (s) => s === null);
}

// C-101: three connections share one message in flight; the Reader moves its RDY between them every 50 ms.
async function manyConnections(c) {
  const [host, port] = c.flags.tcp.split(':');
  const relays = [];
  for (let i = 0; i < 3; i++) {
    const relay = net.createServer((near) => {
      const far = net.connect(Number(port), host);
      near.pipe(far).pipe(near);
      for (const end of [near, far]) end.on('error', () => {}).on('close', () => (near.destroy(), far.destroy()));
    });
    await new Promise((ready) => relay.listen(0, '127.0.0.1', ready));
    relays.push(relay);
  }
  await c.reader('c', finish, { maxInFlight: 1, nsqdTCPAddresses: relays.map((r) => `127.0.0.1:${r.address().port}`) });
  const w = await c.writer();
  for (const b of bodies(30)) {
    await c.publish(w, b);
    await sleep(100);
  }
  await c.messages('c', 30);
  c.exactly('c', 30);
  const s = await c.drained('c');
  need(s.client_count === 3 && c.errors.length === 0, `${s.client_count} connections, errors ${c.errors}`);
  for (const relay of relays) relay.close();
}

// C-102: close() sends CLS to a connection that never subscribed and destroys the socket at once.
async function writerClose(c) {
  for (const b of bodies(20)) {
    const w = await c.writer();
    await c.publish(w, b);
    w.close();
  }
  await c.reader('c', finish);
  await c.messages('c', 20);
  c.exactly('c', 20);
}

// Grants live for a second: a publish after that makes the server ask again. A wrong secret is refused.
async function authRefresh(c) {
  await c.reader('c', finish);
  const w = await c.writer();
  for (const b of bodies(3)) {
    await c.publish(w, b);
    await sleep(1200);
  }
  await c.messages('c', 3);
  if (!c.flags['auth-secret']) return;
  const refused = await c.writer({ authSecret: 'wrong' }).then(() => false, () => true);
  need(refused, 'a wrong secret is accepted');
}

const CASES = { 'publish-consume-finish': publishConsumeFinish, 'multi-publish': multiPublish, 'large-message': largeMessage,
  'deferred-publish': deferredPublish, 'requeue-with-delay': requeueWithDelay, backoff, touch, 'max-in-flight': maxInFlight,
  'fan-out': fanOut, sampling, heartbeats, 'ephemeral-channel': ephemeralChannel, 'many-connections': manyConnections,
  'writer-close': writerClose, 'auth-refresh': authRefresh };

async function runCase(name, flags) {
  const started = Date.now();
  const c = new Case(name, flags);
  const late = sleep(4 * patience).then(() => need(false, 'not finished in time'));
  try {
    await Promise.race([CASES[name](c), late]);
    console.log(`ok ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    console.log(`FAIL ${name}: ${String(error.message || error).replace(/\s+/g, ' ')}`);
    return false;
  } finally {
    c.close();
  }
}

function consumeByLookup(flags) {
  const count = Number(flags.count);
  const got = [];
  const reader = new Reader(flags.topic, 'js', { lookupdHTTPAddresses: [flags.lookup], lookupdPollInterval: 1, maxInFlight: 10 });
  const end = () => {
    console.log(got.join('\n'));
    process.exit(got.length === count ? 0 : 1);
  };
  reader.on('error', () => {});
  reader.on('message', (message) => {
    got.push(message.body.toString());
    message.finish();
    if (got.length === count) setTimeout(end, 200);
  });
  reader.connect();
  setTimeout(() => console.log('asking'), 500);
  setTimeout(end, 3 * patience);
}

// nsqjs has no listener for the error of its own inflater, which it gets when a server closes a Deflate connection; nsqd does the same to it.
process.on('uncaughtException', (error) => {
  if (error.code === 'Z_BUF_ERROR') return;
  console.log(error);
  process.exit(2);
});

async function main() {
  const flags = parse(process.argv.slice(3));
  if (process.argv[2] === 'lookup') return consumeByLookup(flags);
  const wanted = (flags.only || '').split(',').filter(Boolean);
  const names = Object.keys(CASES).filter((name) => wanted.length === 0 || wanted.includes(name));
  const results = await Promise.all(names.map((name) => runCase(name, flags)));
  return process.exit(results.every(Boolean) ? 0 : 1);
}

main();
