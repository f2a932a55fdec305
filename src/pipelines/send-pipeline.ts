import { CallArguments } from '../commands/call-arguments.js';
import { effectOf } from '../commands/effects.js';
import type { Outgoing } from '../core/outgoing.js';
import { type PipelinedCommand, writableOf } from '../host/pipeline.js';
import { commandTimeoutOf, selectedDatabase } from '../host/state.js';
import type { HostClient, QueueItem } from '../host/types.js';
import { appendParts, isAscii, type Part, toBytes } from '../resp/encoder.js';
import { PipelineEntry, type PipelineRecording } from './pipeline-entry.js';

/** Text is checked and joined in pieces of about this many characters. */
const PIECE = 256 * 1024;

/** Longer text is sent as Buffers: a writev of strings takes three bytes per character, and fails beyond 700 MB. */
const MAX_TEXT = 64 * 1024 * 1024;

/**
 * Sends a pipeline or a transaction in one step.
 *
 * @param recording - contains fast entries and host commands.
 */
export function sendPipeline(outgoing: Outgoing, recording: PipelineRecording): void {
  const { client, transaction } = outgoing;
  const { commands } = recording;
  // Encoding may throw, so it comes before any change.
  const encoded = encodePipeline(commands, client);
  const select = selectedDatabase(client);
  recording.sentWith(outgoing.context, select);
  outgoing.reads?.sendsTogether(commands);
  const { begun } = transaction;
  const deadline = outgoing.deadlines.for(commandTimeoutOf(client));
  const items = commands.map((command): QueueItem => {
    if (command instanceof PipelineEntry) {
      command.isTraced = true;
      deadline?.add(command);
      return command;
    }
    transaction.issued(effectOf(new CallArguments().of(command.name, command.args)));
    return { command, select, stream: recording };
  });
  if (recording.isTransaction) transaction.becomes('closed');
  outgoing.enqueueTogether(items, encoded, begun);
}

/** The commands of a pipeline as RESP, in order, for the client that sends them. */
export function encodePipeline(commands: readonly PipelinedCommand[], client: HostClient): Part[] {
  const parts: Part[] = [];
  /** The text of the commands from `first` on, which is assumed to be ASCII. */
  let text = '';
  let first = 0;
  const checkText = (end: number) => {
    if (text === '') return;
    if (isAscii(text)) parts.push(text);
    else for (const entry of commands.slice(first, end) as PipelineEntry[]) appendParts(parts, entry.encode());
    text = '';
  };
  commands.forEach((command, index) => {
    const encoded = command instanceof PipelineEntry ? command.encodeAssumingAscii() : [partOf(command, client)];
    if (typeof encoded === 'string') {
      if (text === '') first = index;
      text += encoded;
      if (text.length >= PIECE) checkText(index + 1);
    } else {
      checkText(index);
      appendParts(parts, encoded);
    }
  });
  checkText(commands.length);
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return bytes > MAX_TEXT ? parts.map(toBytes) : parts;
}

function partOf(command: PipelinedCommand, client: HostClient): Part {
  const writable = writableOf(command, client);
  return typeof writable === 'string' && isAscii(writable) ? writable : Buffer.from(writable as string);
}
