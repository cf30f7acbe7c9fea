import type { TLSSocket } from "node:tls";
import {
  Code,
  connectionPreface,
  Flag,
  type Frame,
  FrameType,
  fieldBlock,
  frame,
  Setting,
  settingsPayload,
  takeFrames,
  uint32,
} from "./frames.ts";

export type Arrival = { readonly streamId: number; readonly body: string };

export type PeerScript = {
  /** Pairs of id and value for the first SETTINGS; `undefined` sends none at all. */
  readonly settings?: ReadonlyArray<readonly [number, number]> | undefined;
  /** A whole request. Streams above the last stream of a GOAWAY are dropped. */
  onRequest(peer: StrictPeer, request: Arrival): void;
  onHeaders?(peer: StrictPeer, streamId: number): void;
  onReset?(peer: StrictPeer, streamId: number, code: number): void;
  /** Answers PING and consumes DATA, unless false. */
  readonly alive?: boolean;
  /** The size of each WINDOW_UPDATE after DATA was consumed; all consumed bytes at once by default. */
  readonly windowStep?: number;
};

type Stream = { body: Buffer[]; requestEnded: boolean; answerEnded: boolean; window: number };

/** Checks one connection of a client against RFC 9113, frame by frame, and lists errors in `violations`. */
export type StrictPeer = ReturnType<typeof createStrictPeer>;

const defaultWindow = 65_535;
const maxFrame = 16_384;
const pingPayloads = ["strict!!", "goaway!!"] as const;

export function createStrictPeer(number: number, socket: TLSSocket, script: PeerScript, violations: string[]) {
  const streams = new Map<number, Stream>();
  const complaints: number[] = [];
  const resets: Array<{ streamId: number; code: number }> = [];
  let buffer: Buffer = Buffer.alloc(0);
  let sawPreface = false;
  let sawSettings = false;
  let headersOpen: number | undefined; // a field block without END_HEADERS: only its CONTINUATION may follow
  let lastStreamId = 0;
  let goawayAt = Number.POSITIVE_INFINITY;
  let goawaySeen = false; // the client has answered the PING after GOAWAY, so it has read GOAWAY
  let maxStreams = Number.POSITIVE_INFINITY;
  const loweredTo: number[] = []; // limits that apply once the client acknowledges them
  let initialWindow = defaultWindow;
  let window = defaultWindow;
  let settingsSent = 0;
  let settingsAcked = 0;
  let pingsAcked = 0;
  let pingsReceived = 0;
  let opened = 0;
  let maxOpen = 0;

  const violate = (what: string) => violations.push(`connection ${number}: ${what}`);
  const write = (...parts: Uint8Array[]) => {
    if (!socket.destroyed && socket.writable) socket.write(Buffer.concat(parts));
  };
  const open = () => {
    let count = 0;
    for (const stream of streams.values()) if (!stream.requestEnded || !stream.answerEnded) count++;
    return count;
  };
  const forget = (id: number) => {
    const stream = streams.get(id);
    if (stream?.requestEnded && stream.answerEnded) streams.delete(id);
  };

  const peer = {
    number,
    socket,
    resumed: socket.isSessionReused(),
    resets,
    /** Codes of the client's GOAWAYs: the errors that it found on this side. */
    complaints,
    get opened() {
      return opened;
    },
    get lastStreamId() {
      return lastStreamId;
    },
    get maxOpen() {
      return maxOpen;
    },
    get pingsReceived() {
      return pingsReceived;
    },
    get pingsAcked() {
      return pingsAcked;
    },
    get settingsAcked() {
      return settingsAcked;
    },
    raw: write,
    settings(...settings: ReadonlyArray<readonly [number, number]>) {
      for (const [id, value] of settings) {
        if (id === Setting.maxStreams && value >= maxStreams) maxStreams = value;
        else if (id === Setting.maxStreams) loweredTo.push(value);
        if (id === Setting.initialWindow) initialWindow = value;
      }
      settingsSent++;
      write(frame(FrameType.settings, 0, 0, settingsPayload(settings)));
    },
    headers(id: number, fields: ReadonlyArray<readonly [string, string | Buffer]>, end = false) {
      write(frame(FrameType.headers, Flag.endHeaders | (end ? Flag.endStream : 0), id, fieldBlock(fields)));
      if (end) peer.ended(id);
    },
    data(id: number, body: string | Buffer, end = false) {
      const bytes = Buffer.from(body);
      for (let at = 0; at === 0 || at < bytes.length; at += maxFrame) {
        const last = at + maxFrame >= bytes.length;
        write(frame(FrameType.data, end && last ? Flag.endStream : 0, id, bytes.subarray(at, at + maxFrame)));
      }
      if (end) peer.ended(id);
    },
    answer(id: number, status = 200, body = "", fields: ReadonlyArray<readonly [string, string]> = []) {
      peer.headers(id, [[":status", String(status)], ...fields], body === "");
      if (body !== "") peer.data(id, body, true);
    },
    ended(id: number) {
      const stream = streams.get(id);
      if (stream !== undefined) stream.answerEnded = true;
      forget(id);
    },
    reset(id: number, code: number) {
      write(frame(FrameType.rstStream, 0, id, uint32(code)));
      streams.delete(id);
    },
    /** `last` is the highest stream that this peer processes. It drops every stream above. */
    goaway(last: number, code: number = Code.noError, debug = "") {
      goawayAt = Math.min(goawayAt, last);
      for (const id of streams.keys()) if (id > last) streams.delete(id);
      write(frame(FrameType.goaway, 0, 0, Buffer.concat([uint32(last, code), Buffer.from(debug)])));
      write(frame(FrameType.ping, 0, 0, Buffer.from(pingPayloads[1])));
    },
    /** Sends WINDOW_UPDATE; stream 0 is the connection. */
    widen(streamId: number, by: number) {
      const stream = streams.get(streamId);
      if (stream !== undefined) stream.window += by;
      if (streamId === 0) window += by;
      write(frame(FrameType.windowUpdate, 0, streamId, uint32(by)));
    },
    ping: () => write(frame(FrameType.ping, 0, 0, Buffer.from(pingPayloads[0]))),
    cut: () => socket.destroy(),
  };

  function onFrame({ type, flags, streamId, payload }: Frame): void {
    if (payload.length > maxFrame) violate(`a frame of ${payload.length} bytes`);
    if (!sawSettings && (type !== FrameType.settings || flags & Flag.ack)) violate(`frame ${type} before SETTINGS`);
    if (headersOpen !== undefined && (type !== FrameType.continuation || streamId !== headersOpen))
      violate(`frame ${type} inside a field block`);
    switch (type) {
      case FrameType.settings:
        onSettings(flags, streamId, payload);
        return;
      case FrameType.headers:
        onHeaders(flags, streamId);
        return;
      case FrameType.continuation:
        if (headersOpen === undefined) violate("CONTINUATION of nothing");
        if (flags & Flag.endHeaders) headersOpen = undefined;
        return;
      case FrameType.data:
        onData(flags, streamId, payload);
        return;
      case FrameType.rstStream: {
        if (payload.length !== 4) violate("RST_STREAM that is not 4 bytes");
        if (streamId === 0 || streamId > lastStreamId) violate(`RST_STREAM on idle stream ${streamId}`);
        const code = payload.readUInt32BE(0);
        streams.delete(streamId);
        resets.push({ streamId, code });
        script.onReset?.(peer, streamId, code);
        return;
      }
      case FrameType.ping:
        if (payload.length !== 8 || streamId !== 0) violate("a malformed PING");
        if (flags & Flag.ack) {
          if (!pingPayloads.some((sent) => payload.equals(Buffer.from(sent))))
            violate("PING acknowledged with other bytes");
          if (payload.toString() === pingPayloads[1]) goawaySeen = true;
          pingsAcked++;
          return;
        }
        pingsReceived++;
        if (script.alive !== false) write(frame(FrameType.ping, Flag.ack, 0, payload));
        return;
      case FrameType.windowUpdate:
        if (payload.length !== 4 || payload.readUInt32BE(0) === 0) violate("a malformed WINDOW_UPDATE");
        if (streamId > lastStreamId) violate(`WINDOW_UPDATE on idle stream ${streamId}`);
        return;
      case FrameType.goaway:
        if (payload.length < 8 || streamId !== 0) violate("a malformed GOAWAY");
        else if (payload.readUInt32BE(4) !== Code.noError) complaints.push(payload.readUInt32BE(4));
        return;
      case FrameType.pushPromise:
        violate("PUSH_PROMISE from a client");
        return;
    }
  }

  function onSettings(flags: number, streamId: number, payload: Buffer): void {
    if (streamId !== 0) violate("SETTINGS on a stream");
    if (flags & Flag.ack) {
      if (payload.length > 0) violate("SETTINGS acknowledgement with a payload");
      if (++settingsAcked > settingsSent) violate("SETTINGS acknowledged more often than sent");
      const lowered = loweredTo.shift();
      if (lowered !== undefined) maxStreams = lowered;
      return;
    }
    sawSettings = true;
    if (payload.length % 6 !== 0) violate("SETTINGS of a broken length");
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const [id, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)];
      if (id === Setting.enablePush && value > 1) violate("ENABLE_PUSH above 1");
      if (id === Setting.initialWindow && value > 0x7fffffff) violate("INITIAL_WINDOW_SIZE too large");
      if (id === Setting.maxFrameSize && (value < maxFrame || value > 0xffffff)) violate("MAX_FRAME_SIZE out of range");
    }
    write(frame(FrameType.settings, Flag.ack, 0));
  }

  function onHeaders(flags: number, streamId: number): void {
    if (streamId % 2 === 0) violate(`a request on stream ${streamId}`);
    if (streamId <= lastStreamId) violate(`stream ${streamId} after ${lastStreamId}`);
    if (goawaySeen) violate(`stream ${streamId} after GOAWAY`);
    lastStreamId = Math.max(lastStreamId, streamId);
    opened++;
    if (!(flags & Flag.endHeaders)) headersOpen = streamId;
    if (streamId > goawayAt) return;
    streams.set(streamId, {
      body: [],
      requestEnded: Boolean(flags & Flag.endStream),
      answerEnded: false,
      window: initialWindow,
    });
    const count = open();
    maxOpen = Math.max(maxOpen, count);
    if (count > maxStreams) violate(`${count} streams open where ${maxStreams} are allowed`);
    script.onHeaders?.(peer, streamId);
    if (flags & Flag.endStream && !socket.destroyed) script.onRequest(peer, { streamId, body: "" });
  }

  function onData(flags: number, streamId: number, payload: Buffer): void {
    if (streamId === 0 || streamId > lastStreamId) violate(`DATA on idle stream ${streamId}`);
    window -= payload.length;
    if (window < 0) violate("more DATA than the connection's window");
    giveBack(0, payload.length);
    const stream = streams.get(streamId);
    if (stream === undefined) return; // reset or refused here, perhaps before the client knew
    if (stream.requestEnded) violate(`DATA after the end of stream ${streamId}`);
    stream.window -= payload.length;
    if (stream.window < 0) violate(`more DATA than the window of stream ${streamId}`);
    stream.body.push(Buffer.from(payload));
    if (!(flags & Flag.endStream)) {
      giveBack(streamId, payload.length);
      return;
    }
    stream.requestEnded = true;
    const body = Buffer.concat(stream.body).toString();
    stream.body = [];
    forget(streamId);
    script.onRequest(peer, { streamId, body });
  }

  function giveBack(streamId: number, size: number): void {
    if (size === 0 || script.alive === false) return;
    if (streamId === 0) window += size;
    const stream = streams.get(streamId);
    if (stream !== undefined) stream.window += size;
    const step = script.windowStep ?? size;
    for (let left = size; left > 0; left -= step)
      write(frame(FrameType.windowUpdate, 0, streamId, uint32(Math.min(step, left))));
  }

  socket.on("error", () => {}); // a client may disconnect at any time
  socket.on("data", (chunk: Buffer) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk]);
    if (!sawPreface) {
      if (buffer.length < connectionPreface.length) return;
      if (!buffer.subarray(0, connectionPreface.length).equals(connectionPreface)) violate("no preface");
      sawPreface = true;
      buffer = buffer.subarray(connectionPreface.length);
    }
    buffer = takeFrames(buffer, (next) => {
      if (!socket.destroyed) onFrame(next);
    });
  });
  for (const [id, value] of script.settings ?? []) {
    if (id === Setting.maxStreams) maxStreams = value;
    if (id === Setting.initialWindow) initialWindow = value;
  }
  if (script.settings !== undefined) {
    settingsSent++;
    write(frame(FrameType.settings, 0, 0, settingsPayload(script.settings)));
  }
  return peer;
}
