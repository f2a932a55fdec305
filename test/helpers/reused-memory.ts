/**
 * A setup file of every test file: memory that a connection reads in place is overwritten as soon as it has been read.
 * So a value that refers to it is seen wherever values are compared.
 */
import { ReplyReader } from '../../src/connection/replies/reply-reader.js';

const { readInPlace } = ReplyReader.prototype;

// Files that share a process share the class.
if (readInPlace.name !== 'readAndOverwrite') {
  ReplyReader.prototype.readInPlace = function readAndOverwrite(this: ReplyReader, bytes) {
    const isRead = readInPlace.call(this, bytes);
    if (isRead) bytes.fill('%');
    return isRead;
  };
}
