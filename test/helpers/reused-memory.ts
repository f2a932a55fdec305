/**
 * A setup file of every test file: memory that a connection reads in place is overwritten as soon as it has been read.
 * So a value that refers to it is seen wherever values are compared.
 */
import { DataListener } from '../../src/host/stream.js';

const { readInPlace } = DataListener.prototype;

// Files that share a process share the class.
if (readInPlace.name !== 'readAndOverwrite') {
  DataListener.prototype.readInPlace = function readAndOverwrite(this: DataListener, bytes) {
    const isRead = readInPlace.call(this, bytes);
    if (isRead) bytes.fill('%');
    return isRead;
  };
}
