/** The gateway's unix socket, for programs in Node on the hub's host: no token, and no WebSocket. */
import { Buffer } from "node:buffer";
import { connect, type Socket as Connection } from "node:net";

import { HEAD } from "./frame.js";
import type { Socket } from "./link.js";

/** A connection whose messages are the frames of a stream. */
class FrameSocket implements Socket {
  binaryType = "arraybuffer";
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  private readonly connection: Connection;
  private pieces: Uint8Array[] = [];
  private length = 0;

  constructor(path: string) {
    this.connection = connect(path);
    this.connection.on("connect", () => {
      this.readyState = 1;
      this.onopen?.({} as never);
    });
    this.connection.on("data", (piece) => this.take(piece));
    this.connection.on("error", (why) => this.onerror?.({ message: `${path}: ${why.message}` } as never));
    this.connection.on("close", () => {
      this.readyState = 3;
      this.onclose?.({} as never);
    });
  }

  send(data: Uint8Array<ArrayBuffer>): void {
    this.connection.write(data);
  }

  close(): void {
    this.readyState = 2;
    this.connection.end();
  }

  private take(piece: Uint8Array): void {
    this.pieces.push(piece);
    this.length += piece.length;
    while (this.length >= HEAD) {
      let first = this.pieces[0] as Uint8Array;
      if (first.length < HEAD) {
        first = Buffer.concat(this.pieces);
        this.pieces = [first];
      }
      const whole = HEAD + new DataView(first.buffer, first.byteOffset, 4).getUint32(0, true);
      if (this.length < whole) {
        return;
      }
      const all = first.length >= whole ? first : Buffer.concat(this.pieces);
      const rest = first.length >= whole ? this.pieces.slice(1) : [];
      // A copy: what is cut out of it stays with the program.
      const frame = new Uint8Array(whole);
      frame.set(all.subarray(0, whole));
      this.pieces = all.length > whole ? [all.subarray(whole), ...rest] : rest;
      this.length -= whole;
      this.onmessage?.({ data: frame.buffer } as never);
    }
  }
}

/** For `ConnectOptions.socket`: connects to `gateway.sock` at this path. */
export function unixSocket(path: string): (url: string, protocol: string) => Socket {
  return () => new FrameSocket(path);
}
