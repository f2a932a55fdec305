// biome-ignore-all format: one mutant takes few lines
/**
 * What a next release of the hosts could bring, as changes of their text. All leave plain clients right (the program
 * tells). A new one is added where its kind is; `npm run test:mutants -- <part of its title>` runs it.
 */
import type { Edit } from './mutate.cjs';

export type { Edit };
export type HostPackage = 'ioredis' | 'ioredis5';
export const HOSTS: readonly HostPackage[] = ['ioredis', 'ioredis5'];

export interface Mutant {
  readonly title: string;
  readonly kind: string;
  readonly hosts: readonly HostPackage[];
  readonly edits: readonly Edit[];
}

/** Titles of those whose writes the cork does not meet. */
export const PLAIN_BY_NATURE = new Set([
  'the stream has another name',
  'the write method is taken when the stream is made',
]);

const BOTH = HOSTS;
const SIX = ['ioredis'] as const;
const FIVE = ['ioredis5'] as const;

function of(kind: string, hosts: readonly HostPackage[], mutants: Record<string, readonly Edit[]>): Mutant[] {
  return Object.entries(mutants).map(([title, edits]) => ({ title, kind, hosts, edits }));
}

/** A text that is in the file once. */
const at = (file: string, search: string, replace: string): Edit => ({ file, search, replace });
/** All places in all files of the host, or in one. */
const all = (search: string, replace: string, file?: string): Edit => ({
  search,
  replace,
  everywhere: true,
  ...(file === undefined ? {} : { file }),
});
const before = (file: string, search: string, added: string): Edit => at(file, search, `${added}${search}`);
const behind = (file: string, search: string, added: string): Edit => at(file, search, `${search}${added}`);

const REDIS = 'Redis.js';
const COMMAND = 'Command.js';
const DATA = 'DataHandler.js';
const EVENTS = 'redis/event_handler.js';
const PIPELINE = 'Pipeline.js';
const TRANSACTION = 'transaction.js';
const COMMANDER = 'utils/Commander.js';
const SCRIPT = 'Script.js';
const UTILS = 'utils/index.js';
const CLUSTER = 'cluster/index.js';
const POOL = 'cluster/ConnectionPool.js';

const WRITE = 'this.stream.write(command.toWritable(this.stream));';
const BATCH_OF_BUFFERS = 'stream.destination.redis.stream.write(Buffer.concat(buffers));';
const BATCH_OF_TEXT = 'stream.destination.redis.stream.write(data);';
const PUSH = `this.commandQueue.push({
                command: command,
                stream: stream,
                select: this.condition.select,
            });`;
const OFFLINE = 'this.offlineQueue.push({\n                command: command,';
const NEW_QUEUE = 'this.commandQueue = new Deque();';
const SHIFT = 'const item = this.redis.commandQueue.shift();';
const AGAIN = 'const item = self.prevCommandQueue.shift();';
const REJECT_DEFAULT = '            default:\n                item.command.reject(err);';
const COMMAND_CLASS = 'class Command {\n';
const PIPELINE_CLASS = 'class Pipeline extends Commander_1.default {\n';
const FILL = 'fillResult(value, position) {\n';
const SEND = 'sendCommand(command, stream) {\n';
const AT_END = `        if (this.status === "end") {
            command.reject(new Error(utils_1.CONNECTION_CLOSED_ERROR_MSG));
            return command.promise;
        }
`;
const SELECTED = 'if (command.name === "select" && (0, utils_1.isInt)(command.args[0])) {';
const METHOD = 'const commandName = (_commandName || args.shift());';

/** Commands get a method with a private field, which what is not of their class lacks. */
const branded = (method: string): Edit => behind(COMMAND, COMMAND_CLASS, `    #notes = [];\n    ${method}(note) {\n        this.#notes.push(note);\n    }\n`);

/** Writes are put off. */
const writesLater = (later: string): Edit[] => {
  const put = (bytes: string, stream: string) => `{ const bytes = ${bytes}, to = ${stream}; ${later}(() => { if (to.writable) to.write(bytes); }); }`;
  const pipeline = 'stream.destination.redis.stream';
  return [at(REDIS, WRITE, put('command.toWritable(this.stream)', 'this.stream')), at(PIPELINE, BATCH_OF_BUFFERS, put('Buffer.concat(buffers)', pipeline)), at(PIPELINE, BATCH_OF_TEXT, put('data', pipeline))];
};

/** A queue of another class. */
const queueOf = (body: string, more: readonly Edit[] = []): Edit[] => [at(REDIS, NEW_QUEUE, 'this.commandQueue = new CommandQueue();'), before(REDIS, 'class Redis extends', `${body}\n`), ...more];

export const MUTANTS: readonly Mutant[] = [
  ...of('names', BOTH, {
    'unchanged but for a comment': [before(REDIS, 'class Redis extends', '// A new comment.\n')],
    'commandQueue has another name': [all('commandQueue', 'sentCommands')],
    'offlineQueue has another name': [all('offlineQueue', 'waitingCommands')],
    'both queues have other names': [all('commandQueue', 'sentCommands'), all('offlineQueue', 'waitingCommands')],
    'condition has another name': [all('this.condition', 'this.session'), all('redis.condition', 'redis.session'), all('self.condition', 'self.session'), all('.condition ||', '.session ||'), all('prevCondition', 'prevSession')],
    'the selected database has another name': [all('ondition.select', 'ondition.database'), at(REDIS, 'select: options.db,', 'database: options.db,')],
    'an item names its database otherwise': [all('item.select', 'item.database'), all('select: this.condition.select,', 'database: this.condition.select,', REDIS)],
    'reject has another name': [all('command.reject', 'command.fail'), all('this.reject', 'this.fail', COMMAND), all('this.reject', 'this.fail', SCRIPT)],
    'name has another name': [all('command.name', 'command.verb'), all('this.name', 'this.verb', COMMAND), all('this.name', 'this.verb', SCRIPT), all('].name', '].verb', PIPELINE)],
    'args has another name': [all('command.args', 'command.values'), all('this.args', 'this.values', COMMAND), all('this.args', 'this.values', SCRIPT)],
    'pipelineIndex has another name': [all('pipelineIndex', 'placeInPipeline')],
    'inTransaction has another name': [all('inTransaction', 'withinMulti')],
    'the stream has another name': [all('this.stream', 'this.socket'), all('redis.stream', 'redis.socket')],
    'scriptsSet and addedBuiltinSet have other names': [all('scriptsSet', 'scripts'), all('addedBuiltinSet', 'builtins')],
    'the tables of transformers have another name': [all('_transformer', '_transformers')],
    'the tables of transformers are maps': [
      all('this._transformer.argument[name] = func', 'this._transformer.argument.set(name, func)'),
      all('this._transformer.reply[name] = func', 'this._transformer.reply.set(name, func)'),
      all('Command._transformer.reply[this.name]', 'Command._transformer.reply.get(this.name)'),
      all('Command._transformer.argument[this.name]', 'Command._transformer.argument.get(this.name)'),
      all('argument: {},\n    reply: {},', 'argument: new Map(),\n    reply: new Map(),'),
    ],
    'what is kept of a lost connection has another name': [all('prevCommandQueue', 'lostCommands')],
    'transformReply has another name': [all('transformReply', 'readReply', COMMAND), all('transformReply', 'readReply', PIPELINE)],
    'toWritable has another name': [all('toWritable', 'toBytes')],
    'replyEncoding has another name': [all('replyEncoding', 'encoding')],
    'initPromise has another name': [all('initPromise', 'renew')],
    'the timeout of a command has another name': [all('command.setTimeout', 'command.limitTime', REDIS), at(COMMAND, '    setTimeout(ms) {', '    limitTime(ms) {')],
    'handleReconnection has another name': [all('handleReconnection', 'settleError')],
    'getKeys and getSlot have other names': [all('getKeys', 'keysOf'), all('getSlot', 'slotOf')],
    'the writer of a pipeline has other names': [
      all('"isPipeline" in stream && stream.isPipeline', '"isBatch" in stream && stream.isBatch', REDIS),
      at(PIPELINE, '            isPipeline: true,', '            isBatch: true,'),
      all('stream.destination', 'stream.to', REDIS),
      all('stream.destination', 'stream.to', PIPELINE),
      at(PIPELINE, '            destination: ', '            to: '),
    ],
  }),
  ...of('names', SIX, {
    'an item names its command otherwise': [all('item.command', 'item.sent', REDIS), all('item.command', 'item.sent', DATA), all('head.command', 'head.sent', DATA), all('item.command', 'item.sent', EVENTS), all('command: command,', 'sent: command,', REDIS), all('.peekAt(i)?.command', '.peekAt(i)?.sent', EVENTS)],
    'items are tuples': [
      all('item.command', 'item[0]', REDIS),
      all('item.command', 'item[0]', DATA), all('head.command', 'head[0]', DATA),
      all('item.command', 'item[0]', EVENTS),
      all('item.stream', 'item[1]', EVENTS),
      all('item.select', 'item[2]', EVENTS),
      all('item.select', 'item[2]', REDIS),
      all('.peekAt(i)?.command', '.peekAt(i)?.[0]', EVENTS),
      all('{\n                command: command,\n                stream: stream,\n                select: this.condition.select,\n            }', '[command, stream, this.condition.select]', REDIS),
    ],
    'the protocol has another name': [all('ondition.protocol', 'ondition.resp'), all('ondition?.protocol', 'ondition?.resp', UTILS), at(REDIS, 'protocol: options.protocol,', 'resp: options.protocol,'), at(COMMAND, 'context?.protocol', '(context?.resp ?? context?.protocol)')],
    'the mapping of replies has another name': [all('ondition.replyMapping', 'ondition.mapping'), at(REDIS, 'replyMapping: options.protocol', 'mapping: options.protocol'), at(COMMAND, 'context?.replyMapping', '(context?.mapping ?? context?.replyMapping)')],
    'the subscriptions have another name': [all('ondition.subscriber', 'ondition.subscriptions'), all('ondition?.subscriber', 'ondition?.subscriptions', UTILS), at(REDIS, 'subscriber: false,', 'subscriptions: false,')],
    'setReplyContext has another name': [all('setReplyContext', 'takeContext')],
    'resolve has another name': [all('command.resolve(', 'command.settle('), all('this.resolve', 'this.settle', COMMAND)],
    'checkFlag has another name': [all('checkFlag', 'hasFlagOf')],
    'isSettled is a method': [all('this.isSettled', 'this.settledAlready', COMMAND), all('command.isSettled', 'command.isSettled()'), before(COMMAND, '    getSlot() {', '    isSettled() {\n        return this.settledAlready;\n    }\n')],
    'the session is a private field': [
      all('this.condition', 'this.session()', REDIS),
      all('redis.condition', 'redis.session()'),
      all('self.condition', 'self.session()'),
      at(REDIS, 'this.session() = {', 'this.#session = {'),
      behind(REDIS, 'class Redis extends Commander_1.default {\n', '    #session;\n    session() {\n        return this.#session;\n    }\n'),
      at('cluster/ClusterSubscriber.js', 'lastActiveSubscriber.condition ||', 'lastActiveSubscriber.session() ||'),
    ],
  }),
  ...of('queue', BOTH, {
    'the queue is an array': queueOf(`class CommandQueue extends Array {
    peekFront() { return this[0]; }
    peekAt(i) { return this[i]; }
    remove(i, count) { return this.splice(i, count); }
}`),
    'the queue has no peekAt': queueOf(
      `class CommandQueue {
    #items = [];
    get length() { return this.#items.length; }
    push(item) { this.#items.push(item); }
    shift() { return this.#items.shift(); }
    unshift(item) { this.#items.unshift(item); }
    peekFront() { return this.#items[0]; }
    peekAtPlace(i) { return this.#items[i]; }
    remove(i, count) { return this.#items.splice(i, count); }
}`,
      [all('peekAt(i)', 'peekAtPlace(i)', EVENTS), at(REDIS, 'this.offlineQueue = new Deque();', 'this.offlineQueue = new CommandQueue();')],
    ),
    'the queue hands out copies of its items': queueOf(`class CommandQueue extends Deque {
    peekFront() { const item = super.peekFront(); return item && { ...item, command: item.command }; }
    peekAt(i) { const item = super.peekAt(i); return item && { ...item, command: item.command }; }
}`),
    'the queue wraps its items': queueOf(`class CommandQueue extends Deque {
    push(item) { return super.push({ command: item.command, stream: item.stream, select: item.select }); }
}`),
    'the queue takes an item and a place': queueOf(
      `class CommandQueue extends Deque {
    push(item, lane) { if (lane === undefined) throw new TypeError("no lane"); return super.push(item); }
}`,
      [at(REDIS, PUSH, PUSH.replace(');', ', "normal");'))],
    ),
    'items know when they were sent': [at(REDIS, PUSH, PUSH.replace('select:', 'sentAt: new Date(),\n                select:')), behind(DATA, SHIFT, '\n        if (item) this.redis.lastLatency = Date.now() - item.sentAt.getTime();')],
    'items have ids, which are checked': [at(REDIS, PUSH, PUSH.replace('select:', 'id: (this.sentCount = (this.sentCount ?? 0) + 1),\n                select:')), behind(DATA, SHIFT, '\n        if (item && item.id === undefined) this.redis.emit("error", new Error("an item without id"));')],
  }),
  ...of('private fields', BOTH, {
    'the decoder notes each reply on its command': [branded('noteReply'), behind(DATA, SHIFT, '\n        item?.command.noteReply("reply");')],
    'errors are noted on their command': [branded('noteError'), before(REDIS, 'let needReconnect = false;', 'item.command.noteError(err);\n        ')],
    'a command is noted when it is sent': [branded('noteSent'), before(REDIS, AT_END, '        command.noteSent(this.status);\n')],
    'a command is noted when it waits for a connection': [branded('noteWaiting'), before(REDIS, OFFLINE, 'command.noteWaiting("offline");\n            ')],
    'a command is noted when its connection is lost': [branded('noteLost'), before(EVENTS, 'const pipelineIndex = command.pipelineIndex;', 'command.noteLost("closed");\n        ')],
    'a command is noted when it is sent again': [branded('noteAgain'), behind(EVENTS, AGAIN, '\n                    item.command.noteAgain("again");')],
    'a command is noted when it is flushed': [branded('noteFlushed'), at(REDIS, 'while ((item = this.commandQueue.shift())) {\n', 'while ((item = this.commandQueue.shift())) {\n                    item.command.noteFlushed("flushed");\n')],
    'a command is noted when the connection ends with it': [branded('noteReconnect'), all('this.sendCommand(item.command);', 'item.command.noteReconnect("again");\n                this.sendCommand(item.command);', REDIS)],
    'a command is noted in a transaction of a pipeline': [branded('noteExec'), at(PIPELINE, 'value[1][i] = cmd.transformReply(value[1][i]);', 'cmd.noteExec("exec");\n                    value[1][i] = cmd.transformReply(value[1][i]);')],
    'a command is noted when a Cluster sends it': [branded('noteNode'), before(CLUSTER, 'let to = this.options.scaleReads;', 'command.noteNode("cluster");\n        ')],
    'a command is noted when it is moved': [branded('noteMoved'), before(CLUSTER, 'targetSlot = Number(slot);', 'command.noteMoved(slot);\n                        ')],
    'a command is noted when it is asked for elsewhere': [branded('noteAsked'), before(CLUSTER, 'debug("command %s is required to ask %s:%s", command.name, key);', 'command.noteAsked(slot);\n                        ')],
    'Redis counts what is in flight': [
      behind(REDIS, 'class Redis extends Commander_1.default {\n', '    #inFlight = 0;\n    sent() {\n        this.#inFlight += 1;\n    }\n    answered() {\n        if (--this.#inFlight < 0) this.emit("error", new Error("more replies than commands"));\n    }\n'),
      at(REDIS, PUSH, `this.sent();\n            ${PUSH}`),
      behind(DATA, SHIFT, '\n        this.redis.answered();'),
    ],
    'a pipeline counts its results': [behind(PIPELINE, PIPELINE_CLASS, '    #filled = 0;\n'), behind(PIPELINE, FILL, '        this.#filled += 1;\n')],
    'a pipeline knows whether it was sent': [behind(PIPELINE, PIPELINE_CLASS, '    #sent = false;\n    markSent() {\n        this.#sent = true;\n    }\n'), before(PIPELINE, 'let writePending = ', '_this.markSent();\n        ')],
    'a transaction checks its pipeline': [behind(PIPELINE, PIPELINE_CLASS, '    #open = true;\n    get isOpen() {\n        return this.#open;\n    }\n'), before(TRANSACTION, 'const exec = pipeline.exec;', 'void pipeline.isOpen;\n        ')],
    'a script knows how often it ran': [behind(SCRIPT, 'class Script {\n', '    #runs = 0;\n'), before(SCRIPT, 'if (typeof this.numberOfKeys === "number") {', 'this.#runs += 1;\n        ')],
  }),
  ...of('order', BOTH, {
    'commands are written in a microtask': writesLater('queueMicrotask'),
    'commands are written on the next tick': writesLater('process.nextTick'),
    'commands are written in an immediate': writesLater('setImmediate'),
    'commands are queued before they are written': [at(REDIS, WRITE, ''), at(REDIS, PUSH, `${PUSH}\n            if (!stream) {\n                ${WRITE}\n            }`)],
    'the host corks the stream for a tick': [before(REDIS, WRITE, '{ const to = this.stream; to.cork(); process.nextTick(() => to.uncork()); }\n                ')],
    'the host joins the writes of a turn': [
      at(
        REDIS,
        WRITE,
        `{ const to = this.stream; (to.joined ??= []).push(Buffer.from(command.toWritable(to)));
                if (to.joined.length === 1) setImmediate(() => { const bytes = Buffer.concat(to.joined.splice(0)); if (to.writable) to.write(bytes); }); }`,
      ),
      all(
        'stream.destination.redis.stream.write(',
        '((bytes) => { const to = stream.destination.redis.stream; (to.joined ??= []).push(Buffer.from(bytes)); if (to.joined.length === 1) setImmediate(() => { const all = Buffer.concat(to.joined.splice(0)); if (to.writable) to.write(all); }); })(',
        PIPELINE,
      ),
    ],
    'the write method is taken when the stream is made': [
      behind(REDIS, '_this.stream = stream;', '\n                _this.writeBytes = stream.write.bind(stream);'),
      at(REDIS, WRITE, 'this.writeBytes(command.toWritable(this.stream));'),
      all('stream.destination.redis.stream.write(', 'stream.destination.redis.writeBytes(', PIPELINE),
    ],
    'single commands are written by a method taken early': [behind(REDIS, '_this.stream = stream;', '\n                _this.writeBytes = stream.write.bind(stream);'), at(REDIS, WRITE, 'this.writeBytes(command.toWritable(this.stream));')],
    'commands are queued in a microtask': [at(REDIS, PUSH, PUSH.replace('this.commandQueue.push({', '{ const item = {').replace('});', '}; queueMicrotask(() => this.commandQueue.push(item)); }'))],
    // Both: if one were late alone, the order of a value and an error would depend on whether one chunk brought them.
    'values and errors are settled on the next tick': [all('item.command.resolve(reply);', 'process.nextTick(() => item.command.resolve(reply));', DATA), at(REDIS, REJECT_DEFAULT, REJECT_DEFAULT.replace('item.command.reject(err);', 'process.nextTick(() => item.command.reject(err));'))],
    'the ready event comes before its status is set': [at(EVENTS, 'self.setStatus("ready");', 'self.setStatus("ready");\n        self.readyAt = Date.now();')],
    'the stream is written with a callback': [at(REDIS, WRITE, 'this.stream.write(command.toWritable(this.stream), () => { this.lastWrite = Date.now(); });')],
    'the stream is written as bytes': [at(REDIS, WRITE, 'this.stream.write(Buffer.from(command.toWritable(this.stream)));')],
  }),
  ...of('order', SIX, {
    'the decoder answers in a microtask': [at(DATA, '            fn();\n', '            queueMicrotask(fn);\n')],
    'the decoder answers on the next tick': [at(DATA, '            fn();\n', '            process.nextTick(fn);\n')],
    'the decoder answers in an immediate': [at(DATA, '            fn();\n', '            setImmediate(fn);\n')],
    'the decoder answers when a chunk has been read': [at(DATA, '            fn();\n', '            (this.pending ??= []).push(fn);\n'), behind(DATA, 'decoder.write(data);', '\n                for (const answer of this.pending?.splice(0) ?? []) answer();')],
    'chunks are decoded on the next tick': [at(DATA, 'decoder.write(data);', 'const kept = Buffer.from(data);\n                process.nextTick(() => decoder.write(kept));')],
    'the decoder keeps one reply back': [at(DATA, '            fn();\n', '            this.back?.(); this.back = fn; const back = fn; setImmediate(() => { if (this.back === back) { this.back = undefined; back(); } });\n')],
  }),
  ...of('order', FIVE, {
    ...Object.fromEntries(
      ['queueMicrotask', 'process.nextTick', 'setImmediate'].map((later) => [
        `the parser answers by ${later}`,
        [at(DATA, '                this.returnError(err);', `                ${later}(() => this.returnError(err));`), at(DATA, '                this.returnReply(reply);', `                ${later}(() => this.returnReply(reply));`)],
      ]),
    ),
    'chunks are parsed on the next tick': [at(DATA, 'parser.execute(data);', 'const kept = Buffer.from(data);\n            process.nextTick(() => parser.execute(kept));')],
  }),
  ...of('new steps', BOTH, {
    'long arguments are refused': [before(REDIS, AT_END, '        if (command.args.some((arg) => arg.length > 100000)) {\n            stream?.write("");\n            command.reject(new Error("an argument is too long"));\n            return command.promise;\n        }\n')],
    'empty keys are refused': [before(REDIS, AT_END, '        if (command.name === "get" && command.args[0] === "") {\n            stream?.write("");\n            command.reject(new Error("a key is empty"));\n            return command.promise;\n        }\n')],
    'there is a limit of commands in flight': [before(REDIS, AT_END, '        if (this.commandQueue.length >= 400) {\n            stream?.write("");\n            command.reject(new Error("too many commands in flight"));\n            return command.promise;\n        }\n')],
    'commands behind QUIT are refused': [before(REDIS, AT_END, '        if (this.isQuitting) {\n            stream?.write("");\n            command.reject(new Error("QUIT was sent"));\n            return command.promise;\n        }\n        this.isQuitting = command.name === "quit";\n')],
    'commands behind disconnect() are refused': [
      behind(REDIS, 'disconnect(reconnect = false) {\n', '        this.isEnding = !reconnect;\n'),
      before(REDIS, AT_END, '        if (this.isEnding && this.status === "ready") {\n            stream?.write("");\n            command.reject(new Error("disconnect() was called"));\n            return command.promise;\n        }\n'),
    ],
    'an interceptor may change arguments': [before(REDIS, AT_END, '        if (command.name === "append") {\n            command.args[1] = command.args[1] + "!";\n        }\n')],
    'commands that follow an error carry a mark': [
      before(REDIS, 'let needReconnect = false;', 'this.lastError = err;\n        '),
      before(REDIS, AT_END, '        if (this.lastError && command.name === "get" && this.lastError.message.startsWith("WRONGTYPE")) {\n            this.lastError = undefined;\n            stream?.write("");\n            command.reject(new Error("after an error"));\n            return command.promise;\n        }\n'),
    ],
    'text is trimmed': [at(COMMAND, 'return result;\n    }\n    /**\n     * Set the wait time', 'return typeof result === "string" ? result.trimEnd() : result;\n    }\n    /**\n     * Set the wait time')],
    'null becomes undefined': [at(COMMAND, 'resolve(this.transformReply(value));', 'resolve(this.transformReply(value) ?? undefined);')],
    'replies pass a hook of their command': [at(COMMAND, 'resolve(this.transformReply(value));', 'resolve(this.finish(this.transformReply(value)));'), before(COMMAND, '    getSlot() {', '    finish(value) {\n        return Array.isArray(value) ? Object.freeze(value) : value;\n    }\n')],
    'arrays are frozen by the decoder': [before(DATA, 'returnReply(reply) {\n', 'frozen(reply) {\n        return Array.isArray(reply) ? Object.freeze(reply) : reply;\n    }\n    '), all('item.command.resolve(reply);', 'item.command.resolve(this.frozen(reply));', DATA)],
    'replies come with their item': [
      all('item.command.resolve(reply);', 'item.command.resolve(reply, item);', DATA),
      at(COMMAND, 'return (value) => {\n            try {\n', 'return (value, item) => {\n            try {\n                if (item && item.command !== this) throw new Error("the reply of another");\n'),
    ],
    'errors carry the database': [before(REDIS, 'let needReconnect = false;', 'err.database = item.select;\n        ')],
    'errors carry a code': [before(REDIS, 'let needReconnect = false;', 'err.code = err.message.split(" ")[0];\n        ')],
    'errors describe their command': [before(COMMAND, '    getSlot() {', '    describe() {\n        return [this.name, this.args.length].join(" ");\n    }\n'), before(REDIS, 'let needReconnect = false;', 'err.described = item.command.describe();\n        ')],
    'errors are rejected through a method': [before(COMMAND, '    getSlot() {', '    refuse(err) {\n        err.refused = true;\n        this.reject(err);\n    }\n'), at(REDIS, REJECT_DEFAULT, REJECT_DEFAULT.replace('command.reject', 'command.refuse'))],
    'a timeout names its command': [at(COMMAND, 'new Error("Command timed out")', 'new Error("Command timed out: " + this.name)')],
    'a timeout has a code': [at(COMMAND, 'new Error("Command timed out")', 'Object.assign(new Error("Command timed out"), { code: "ETIMEOUT" })')],
    'an error of a lost connection names its command': [
      at(REDIS, 'while ((item = this.commandQueue.shift())) {\n                    item.command.reject(error);', 'while ((item = this.commandQueue.shift())) {\n                    item.command.reject(Object.assign(new Error(error.message), { lost: item.command.name }));'),
    ],
    'what was written is not sent again': [
      at(REDIS, PUSH, PUSH.replace('select:', 'isWritten: true,\n                select:')),
      behind(EVENTS, AGAIN, '\n                    if (item.isWritten && item.command.name === "incr") {\n                        item.stream?.write("");\n                        item.command.reject(new Error("may have been executed"));\n                        continue;\n                    }'),
    ],
    'what is sent again is marked': [behind(EVENTS, AGAIN, '\n                    item.command.sentAgain = true;'), at(COMMAND, 'resolve(this.transformReply(value));', 'resolve(this.sentAgain ? [this.transformReply(value)] : this.transformReply(value));')],
    'SELECT is sent with the next command': [
      before(
        REDIS,
        AT_END,
        `        if (this.status === "ready" && !stream && !this.condition.subscriber) {
            if (command.name === "select" && !command.isLazy && Number(command.args[0]) < 16) {
                this.wanted = Number(command.args[0]);
                command.resolve(Buffer.from("OK"));
                return command.promise;
            }
        }
        if (this.wanted !== undefined && this.status === "ready") {
            const lazy = new Command_1.default("select", [this.wanted]);
            lazy.isLazy = true;
            this.wanted = undefined;
            this.sendCommand(lazy).catch(() => {});
        }
`,
      ),
    ],
    'the database changes when SELECT is answered': [
      at(REDIS, SELECTED, 'if (command.name === "select" && command.args[0] === "1") {\n            command.promise.then(() => { this.condition.select = 1; }, () => {});\n        }\n        else if (command.name === "select" && (0, utils_1.isInt)(command.args[0])) {'),
    ],
    'commands wait for SELECT to be answered': [
      before(
        REDIS,
        AT_END,
        `        if (this.selecting && !stream && this.status === "ready") {
            (this.held ??= []).push(command);
            return command.promise;
        }
        if (command.name === "select" && this.status === "ready" && !stream) {
            this.selecting = true;
            const release = () => { this.selecting = false; for (const each of this.held?.splice(0) ?? []) this.sendCommand(each); };
            command.promise.then(release, release);
        }
`,
      ),
    ],
    'a lost WATCH fails its transaction': [
      before(
        REDIS,
        AT_END,
        `        if (command.name === "watch") this.isWatching = true;
        if ((command.name === "exec" || command.name === "multi") && this.isStale) {
            if (command.name === "exec") this.isStale = false;
            stream?.write("");\n            command.reject(new Error("the WATCH is lost"));
            return command.promise;
        }
        if (command.name === "exec") this.isWatching = false;
`,
      ),
      before(EVENTS, 'const prevStatus = self.status;', 'if (self.isWatching) { self.isStale = true; self.isWatching = false; }\n        '),
    ],
    'replies of QUEUED are hidden': [
      before(REDIS, AT_END, '        if (command.name === "multi" && !stream) this.isOpen = true;\n        if (command.name === "exec") this.isOpen = false;\n        command.isInMulti = this.isOpen && command.name !== "multi" && command.name !== "exec";\n'),
      at(COMMAND, 'resolve(this.transformReply(value));', 'resolve(this.isInMulti ? null : this.transformReply(value));'),
    ],
    'the connect event comes once': [at(REDIS, 'process.nextTick(this.emit.bind(this, status, arg));', 'if (status !== "connect" || !this.hasConnected) process.nextTick(this.emit.bind(this, status, arg));\n        if (status === "connect") this.hasConnected = true;')],
    'the next status is emitted at once': [at(REDIS, 'process.nextTick(this.emit.bind(this, status, arg));', 'queueMicrotask(this.emit.bind(this, status, arg));')],
    // It ends before a monitor begins: one of ioredis fails when a command of others is told to it too early.
    'there is a heartbeat': [
      behind(EVENTS, 'self.setStatus("ready");', '\n        self.beat = setInterval(() => { if (self.status === "ready" && !self.condition.subscriber && !self.options.monitor) self.ping().catch(() => {}); }, 10);\n        self.once("close", () => clearInterval(self.beat));'),
      behind(REDIS, 'monitor(callback) {\n', '        clearInterval(this.beat);\n'),
    ],
  }),
  ...of('argument and reply helpers', BOTH, {
    'true is 1': [at(UTILS, 'function toArg(arg) {\n', 'function toArg(arg) {\n    if (typeof arg === "boolean") return arg ? "1" : "0";\n')],
    'dates are ISO': [at(UTILS, 'function toArg(arg) {\n', 'function toArg(arg) {\n    if (arg instanceof Date) return arg.toISOString();\n')],
    'null is refused': [at(UTILS, 'function toArg(arg) {\n', 'function toArg(arg) {\n    if (arg === null) throw new TypeError("null is no argument");\n')],
    'numbers have a form of their own': [at(UTILS, 'function toArg(arg) {\n', 'function toArg(arg) {\n    if (typeof arg === "number" && !Number.isInteger(arg)) return arg.toFixed(3);\n')],
    'fields that are undefined are left out': [all('result.push(keys[i], obj[keys[i]]);', 'if (obj[keys[i]] !== undefined) result.push(keys[i], obj[keys[i]]);', UTILS)],
    'bytes that are no UTF-8 are read as Latin-1': [at(UTILS, 'return value.toString(encoding);', 'return value.includes(0xff) ? value.toString("latin1") : value.toString(encoding);')],
    'a prefix ends in a colon': [at(COMMAND, 'return options.keyPrefix + key;', 'return options.keyPrefix + ":" + key;')],
    'hgetall has no prototype': [at(COMMAND, 'const obj = {};', 'const obj = Object.create(null);')],
    'mset takes pairs in order': [
      at(COMMAND, 'const msetArgumentTransformer = function (args) {\n', 'const msetArgumentTransformer = function (args) {\n    if (args.length === 1 && args[0] && args[0].constructor === Object) return Object.keys(args[0]).sort().flatMap((key) => [key, args[0][key] + "!"]);\n'),
    ],
    'transformers stand in another table': [
      at(COMMAND, 'const transformer = Command._transformer.reply[this.name];', 'const transformer = Command.readers[this.name];'),
      at(COMMAND, 'this._transformer.reply[name] = func;', 'this.readers[name] = func;'),
      at(COMMAND, 'Command._transformer = {', 'Command.readers = {};\nCommand._transformer = {'),
    ],
    'a client has transformers of its own': [at(COMMAND, 'const transformer = Command._transformer.argument[this.name];', 'const transformer = Command._transformer.argument[this.name] ?? (this.name === "setex" ? (args) => [args[0], args[1], args[2] + "+"] : undefined);')],
    'arguments are made text when they are sent': [at(COMMAND, '                this.stringifyArguments();\n', ''), all('command.toWritable(', '(command.stringifyArguments(), command).toWritable(', REDIS)],
    'callbacks come later': [at('/standard-as-callback/built/index.js', 'promise.then((val) => {', 'promise.then((v) => new Promise((done) => setImmediate(done, v))).then((val) => {')],
    'the queue of the package grows otherwise': [at('/denque/index.js', '    this._list = new Array(4);\n  }', '    this._list = [,,,,];\n  }')],
  }),
  ...of('replies', SIX, {
    'doubles are numbers': [at(DATA, '[decoder_1.RESP_TYPES.DOUBLE]: Buffer,\n    [decoder_1.RESP_TYPES.BOOLEAN]: Number,', '[decoder_1.RESP_TYPES.BOOLEAN]: Number,')],
    'sets are sets': [all('[decoder_1.RESP_TYPES.SET]: Array,', '', DATA)],
    'maps are objects': [at(DATA, '[decoder_1.RESP_TYPES.MAP]: Array,', '')],
    'numbers are text': [at(DATA, '[decoder_1.RESP_TYPES.BOOLEAN]: Number,', '[decoder_1.RESP_TYPES.BOOLEAN]: Number,\n    [decoder_1.RESP_TYPES.NUMBER]: String,'), at(CLUSTER, 'slotRangeStart = items[0];', 'slotRangeStart = Number(items[0]);'), at(CLUSTER, 'slotRangeEnd = items[1];', 'slotRangeEnd = Number(items[1]);')],
    'status replies are text': [at(DATA, 'const legacyTypeMapping = {\n    [decoder_1.RESP_TYPES.SIMPLE_STRING]: Buffer,', 'const legacyTypeMapping = {\n    [decoder_1.RESP_TYPES.SIMPLE_STRING]: String,')],
    'pushes that answer nothing are emitted': [before(DATA, "const replyType = reply[0].toString();\n        debug('receive push", 'this.redis.emit("push", reply);\n        ')],
    'the answer of a command tells its protocol': [at(COMMAND, 'this.protocol = context?.protocol ?? 2;', 'this.protocol = context?.protocol ?? 2;\n        this.answersOf = context?.replyMapping === undefined ? "options" : "connection";')],
    'pairs of hgetall are read by the mapping': [at(COMMAND, 'Command.setReplyTransformer("hgetall", function (result) {\n', 'Command.setReplyTransformer("hgetall", function (result, { protocol }) {\n    if (protocol === 3 && Array.isArray(result) && result.length === 0) return null;\n')],
  }),
  ...of('pipelines', BOTH, {
    '_queue checks what it takes': [
      at(PIPELINE, 'this._queue = [];\n        this._result', 'this._queue = new CommandList();\n        this._result'),
      before(PIPELINE, PIPELINE_CLASS, 'class CommandList extends Array {\n    push(command) {\n        if (!(command instanceof Command_1.default)) throw new TypeError("no command");\n        return super.push(command);\n    }\n}\n'),
    ],
    '_result is a map': [
      at(PIPELINE, 'this._result = [];', 'this._result = new Map();'),
      at(PIPELINE, 'this._result[position] = value;', 'this._result.set(position, value);'),
      all('this._result.length', 'this._result.size', PIPELINE),
      at(PIPELINE, 'const error = this._result[i][0];', 'const error = this._result.get(i)[0];'),
      at(PIPELINE, 'this._result[i] = this._result[i + ignoredCount];', 'this._result.set(i, this._result.get(i + ignoredCount));'),
      at(PIPELINE, 'this._result.slice(0,', 'Array.from({ length: this._result.size }, (_, i) => this._result.get(i)).slice(0,'),
    ],
    'fillResult takes an error, a value and a place': [
      at(PIPELINE, FILL, 'fillResult(failure, answer, position) {\n        const value = failure ? [failure] : [null, answer];\n'),
      at(PIPELINE, 'this.fillResult([null, result], position);', 'this.fillResult(null, result, position);'),
      at(PIPELINE, 'this.fillResult([error], position);', 'this.fillResult(error, undefined, position);'),
    ],
    'fillResult has another name': [all('fillResult', 'take', PIPELINE)],
    'the fields of a pipeline have other names': [all('this._queue', 'this.commands', PIPELINE), all('this._result', 'this.results', PIPELINE)],
    '_transactions has another name': [all('_transactions', '_depth')],
    'replyPending has another name': [all('replyPending', 'awaited')],
    'results are frozen': [at(PIPELINE, 'this.resolve(this._result.slice(0, this._result.length - ignoredCount));', 'this.resolve(Object.freeze(this._result.slice(0, this._result.length - ignoredCount)));')],
    'results count their errors': [at(PIPELINE, 'this.resolve(this._result.slice(0, this._result.length - ignoredCount));', 'this.resolve(Object.assign(this._result.slice(0, this._result.length - ignoredCount), { errors: this._result.filter(([error]) => error).length }));')],
    'exec needs a field of the constructor': [before(PIPELINE, 'this._transactions = 0;', 'this.limits = { commands: 1000 };\n        '), before(PIPELINE, 'let writePending = ', 'if (_this._queue.length > _this.limits.commands) throw new Error("too many");\n        ')],
    'commands of a pipeline know it': [before(PIPELINE, 'const position = this._queue.length;', 'command.pipeline = this;\n        '), behind(PIPELINE, FILL, '        if (this._queue[position].pipeline !== this) throw new Error("a command of another pipeline");\n')],
    'a pipeline is sent in parts': [before(PIPELINE, 'if (!--writePending) {', 'if (buffers === undefined && data.length > 2000) { stream.destination.redis.stream.write(data); data = ""; }\n                ')],
    'the length of a pipeline is counted': [before(PIPELINE, 'const position = this._queue.length;', 'this._count = (this._count ?? 0) + 1;\n        '), at(PIPELINE, 'return _this._queue.length;', 'return _this._count ?? 0;')],
    'a transaction keeps its errors elsewhere': [all('previousErrors', 'queuedErrors', TRANSACTION)],
    'results of a transaction are objects': [at(UTILS, 'result.push([null, item]);', 'result.push(Object.assign([null, item], { value: item }));')],
    'a transaction may be sent once': [
      before(TRANSACTION, 'const exec = pipeline.exec;', 'let isSent = false;\n        '),
      at(TRANSACTION, '            if (this._transactions > 0) {\n                exec.call(pipeline);', '            if (isSent) throw new Error("sent before");\n            isSent = true;\n            if (this._transactions > 0) {\n                exec.call(pipeline);'),
    ],
  }),
  ...of('generated methods', BOTH, {
    'methods read one more field of the client': [before(COMMANDER, 'this.options = {};', 'this.defaults = { encoding: "utf8" };\n        '), behind(COMMANDER, METHOD, '\n        if (!this.defaults.encoding) throw new Error("no encoding");')],
    'methods send through another method': [at(COMMANDER, 'return this.sendCommand(\n', 'return this.submit(\n'), before(COMMANDER, '    sendCommand(command, stream, node) {', '    submit(command) {\n        return this.sendCommand(command);\n    }\n')],
    'methods count their calls': [before(COMMANDER, 'this.options = {};', 'this.calls = new Map();\n        '), behind(COMMANDER, METHOD, '\n        this.calls.set(commandName, (this.calls.get(commandName) ?? 0) + 1);')],
    'methods validate their arguments': [behind(COMMANDER, METHOD, '\n        if (commandName === "get" && args.length === 0) throw new TypeError("get needs a key");')],
    'methods take options at the end': [behind(COMMANDER, METHOD, '\n        if (commandName === "hset" && args[2] === undefined && typeof args[1] === "object") args = [args[0], ...Object.entries(args[1]).flat().map(String)];')],
    'methods of scripts read one more field': [before(COMMANDER, 'this.options = {};', 'this.scriptDefaults = {};\n        '), all('            replyEncoding: encoding,\n', '            replyEncoding: encoding,\n            ...this.scriptDefaults.options,\n', COMMANDER)],
    'defineCommand uses a registry': [
      before(COMMANDER, 'this.options = {};', 'this.registry = { add: (name, script) => { this.scriptsSet[name] = script; } };\n        '),
      at(COMMANDER, 'this.scriptsSet[name] = script;\n        this[name] =', 'this.registry.add(name, script);\n        this[name] ='),
    ],
    'a script is always sent by its digest first': [at(SCRIPT, 'this.name = "eval";\n                    this.args[0] = lua;', 'this.name = "evalsha";'), at(SCRIPT, 'socketHasScriptLoaded.delete(socket);', 'this.isMissing = true;')],
    'a script is kept by its client': [
      all('socketHasScriptLoaded.has(socket)', 'socketHasScriptLoaded.has(socket.loaded ??= {})', SCRIPT),
      all('socketHasScriptLoaded.add(socket)', 'socketHasScriptLoaded.add(socket.loaded)', SCRIPT),
      all('socketHasScriptLoaded.delete(socket)', 'socketHasScriptLoaded.delete(socket.loaded)', SCRIPT),
    ],
    'a script runs through another method': [all('script.execute(', 'script.run(', COMMANDER), at(SCRIPT, '    execute(container', '    run(container')],
    'a Command takes one object': [
      at(COMMAND, 'constructor(name, args = [], options = {}, callback) {', 'constructor(first, second, third, fourth) {\n        const { name, args = [], options = {}, callback } = typeof first === "object" ? first : { name: first, args: second, options: third, callback: fourth };'),
      at(COMMANDER, 'new Command_1.default(commandName, args, options, callback));', 'new Command_1.default({ name: commandName, args, options, callback }));'),
    ],
    'arguments are flattened to the end': [at(COMMAND, 'this.args = args.flat();', 'this.args = args.flat(Infinity);')],
  }),
  ...of('stream', BOTH, {
    'the stream is read by for await': [at(DATA, 'redis.stream.prependListener("data", (data) => {', '(async (read) => { try { for await (const data of redis.stream) read(data); } catch {} })((data) => {'), at(DATA, '        redis.stream.resume();\n', '')],
    'the stream is read when it is readable': [
      at(DATA, 'redis.stream.prependListener("data", (data) => {', 'const source = redis.stream;\n        source.on("readable", () => { for (let data = source.read(); data !== null; data = source.read()) this.take(data); });\n        this.take = ((data) => {'),
      at(DATA, '        redis.stream.resume();\n', ''),
    ],
    'the stream is piped': [at(DATA, 'redis.stream.prependListener("data", (data) => {', 'redis.stream.pipe(new (require("stream").Writable)({ write: (data, _encoding, done) => { this.take(data); done(); } }));\n        this.take = ((data) => {')],
    'bytes are counted by another listener': [before(DATA, 'redis.stream.prependListener("data", (data) => {', 'redis.stream.on("data", (data) => { redis.bytesRead = (redis.bytesRead ?? 0) + data.length; });\n        ')],
    'two listeners look like the decoder': [
      before(DATA, 'redis.stream.prependListener("data", (data) => {', 'const decoder2 = { write() {}, execute() {} };\n        redis.stream.on("data", (data) => { const parser = decoder2, decoder = decoder2; parser.execute(data); decoder.write(data); });\n        '),
    ],
    'the listener is replaced while it is used': [
      at(
        DATA,
        'redis.stream.prependListener("data", (data) => {',
        'let count = 0;\n        const renew = () => { if (++count === 3) { source.removeListener("data", listen); source.prependListener("data", listen = (data) => read(data)); } };\n        const source = redis.stream;\n        let listen = (data) => { read(data); renew(); };\n        let read;\n        source.prependListener("data", listen);\n        read = ((data) => {',
      ),
    ],
  }),
  ...of('Cluster', BOTH, {
    'the pool of a Cluster has another name': [all('.connectionPool', '.pool')],
    'the nodes of the pool have other names': [all('nodes.all', 'nodes.every'), at(POOL, '            all: {},', '            every: {},'), all('this.nodes[role]', 'this.nodes[role === "all" ? "every" : role]', POOL)],
    // Its options slotsRefreshTimeout and slotsRefreshInterval keep their names.
    'the slots of a Cluster have another name': [all('.slots[', '.owners[', CLUSTER), all('this.slots,', 'this.owners,', CLUSTER), at(CLUSTER, 'this.slots = [];', 'this.owners = [];'), all('.slots', '.owners', PIPELINE), all('.slots', '.owners', TRANSACTION), all('.slots', '.owners', 'autoPipelining.js')],
    'nodes are found by another method': [all('getInstanceByKey', 'instanceOf'), all('getSampleInstance', 'anyInstance')],
    'handleError takes the handlers first': [
      at(CLUSTER, 'handleError(error, ttl, handlers) {', 'handleError(handlers, error, ttl) {'),
      at(CLUSTER, '_this.handleError(err, ttl, {', '_this.handleError2(err, ttl, {'),
      before(CLUSTER, '    handleError(handlers', '    handleError2(error, ttl, handlers) {\n        return this.handleError(handlers, error, ttl);\n    }\n'),
      at(PIPELINE, 'cluster.handleError(', 'cluster.handleError2('),
    ],
    // Told of the reads that were moved for sure: how often others are depends on when the slots are refreshed.
    'redirections are counted on the command': [
      before(CLUSTER, 'targetSlot = Number(slot);', 'command.moves = (command.moves ?? 0) + 1;\n                        '),
      at(COMMAND, 'resolve(this.transformReply(value));', 'resolve(this.moves && this.name === "hgetall" ? [this.moves, this.transformReply(value)] : this.transformReply(value));'),
    ],
    'redirections wrap another method': [
      at(CLUSTER, 'const reject = command.reject;\n            command.reject = function (err) {', 'const reject = command.reject;\n            command.onError = function (err) {'),
      at(REDIS, REJECT_DEFAULT, REJECT_DEFAULT.replace('item.command.reject(err);', '(item.command.onError ?? item.command.reject)(err);')),
      all('item.command.reject(error);', '(item.command.onError ?? item.command.reject)(error);', REDIS),
    ],
    'a Cluster checks the slots of a command': [
      before(CLUSTER, 'let to = this.options.scaleReads;', 'if (command.name === "mget" && command.getKeys().length > 1 && !command.getKeys()[0].includes("{")) {\n            command.reject(new Error("keys of several slots"));\n            return command.promise;\n        }\n        '),
    ],
    'a Cluster refuses a command': [before(CLUSTER, 'let to = this.options.scaleReads;', 'if (command.name === "zscore") {\n            command.reject(new Error("zscore is off"));\n            return command.promise;\n        }\n        ')],
    'a Cluster sends by another method of its nodes': [
      at(CLUSTER, '            redis.sendCommand(command, stream);\n        }\n        return command.promise;', '            redis.sendOfCluster(command, stream);\n        }\n        return command.promise;'),
      before(REDIS, `    ${SEND}`, '    sendOfCluster(command, stream) {\n        return this.sendCommand(command, stream);\n    }\n'),
    ],
    'a Cluster keeps commands that are moved for a moment': [
      before(CLUSTER, 'targetSlot = Number(slot);', 'this.lastMove = slot;\n                        '),
      at(CLUSTER, '                        tryConnection();\n                        debug("refreshing', '                        setTimeout(tryConnection, 5);\n                        debug("refreshing'),
    ],
    'the weak set of a Cluster is a symbol': [
      all('REJECT_OVERWRITTEN_COMMANDS.has(command)', 'command[overwritten]', CLUSTER),
      all('REJECT_OVERWRITTEN_COMMANDS.add(command);', 'command[overwritten] = true;', CLUSTER),
      at(CLUSTER, 'const REJECT_OVERWRITTEN_COMMANDS = new WeakSet();', 'const overwritten = Symbol("overwritten");'),
    ],
    'a node tells its Cluster of each command': [
      at(POOL, 'this.emit("+node", redis, key);', 'redis.pool = this;\n            this.emit("+node", redis, key);'),
      before(REDIS, AT_END, '        if (this.pool && command.name === "incr") command.args[0] = String(command.args[0]).replace("k3", "k4");\n'),
    ],
  }),
];
