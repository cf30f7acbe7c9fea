import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { answerStream, overStream, type Reply } from "../exchange.ts";
import { type Connection, createH2Server } from "../h2-server.ts";
import type { Parts } from "../parts.ts";
import type { Rule } from "../script/rule.ts";
import { settle } from "../script/settle.ts";
import type { Simulator } from "../simulator.ts";
import { createTimers } from "../timers.ts";
import { checkHeaders, checkPath, checkPayload, maxBody, tokenOf } from "./check-request.ts";
import { type ApnsKey, type Authentication, createProviderTokens } from "./provider-token.ts";
import { statusOf, usualReason } from "./reasons.ts";
import type { Refusal } from "./refusal.ts";

export interface ApnsOptions {
  /** Signing keys by which tokens of their teams are verified. Of another team any signature is accepted. */
  readonly keys?: readonly ApnsKey[];
  /** Answer 429 TooManyProviderTokenUpdates to a second new token of a key within 20 minutes. Default: no. */
  readonly limitTokenUpdates?: boolean;
  /** Refuse a request without apns-priority, apns-expiration or apns-id, which Apple would default. Default: yes. */
  readonly requireAllHeaders?: boolean;
  /** `sandbox` (the default) answers with `apns-unique-id`, as Apple's does. */
  readonly environment?: "sandbox" | "production";
  /** Milliseconds since 1970, for the age of tokens. */
  readonly now?: () => number;
}

export interface ApnsSimulator extends Simulator {
  /** Replaces the known signing keys; tokens are checked again. @throws when a key is not a PEM public key */
  setKeys(keys: readonly ApnsKey[]): void;
}

/** A request that was read to its end. */
interface Received {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection;
  readonly headers: IncomingHttpHeaders;
  /** Cut short when `size` is more than any payload may have. */
  readonly payload: string;
  /** Bytes. */
  readonly size: number;
}

const accepted = (headers: Reply["headers"]): Reply => ({ status: 200, headers });

const failure = (status: number, reason: string, headers: Reply["headers"], rest: object = {}): Reply => ({
  status,
  headers,
  body: JSON.stringify({ reason, ...rest }),
  reason,
});

const scripted =
  (headers: Reply["headers"], now: () => number) =>
  (rule: Rule, status: number): Reply => {
    const all = { ...headers, ...rule.headers };
    if (rule.body !== undefined) return { status, headers: all, body: rule.body, reason: rule.reason };
    if (status === 200) return accepted(all);
    const reason = rule.reason ?? usualReason(status) ?? "InternalServerError";
    return failure(status, reason, all, status === 410 ? { timestamp: rule.timestamp ?? now() } : {});
  };

/** Apple's push service: HTTP/2 over TLS, strict about what its documentation asks. */
export async function startApns({
  identity,
  script,
  log,
  host,
  publicHost,
  port,
  options,
}: Parts<ApnsOptions>): Promise<ApnsSimulator> {
  const { limitTokenUpdates = false, requireAllHeaders = true, environment = "sandbox", now = Date.now } = options;
  const tokens = createProviderTokens({ keys: options.keys ?? [], limitUpdates: limitTokenUpdates, now });
  const timers = createTimers();
  const h2 = createH2Server({ provider: "apns", identity, script, requestCertificate: true });
  const authentications = new WeakMap<Connection, Authentication>();

  const authenticate = ({ connection, headers: { authorization } }: Received): Refusal | undefined => {
    if (connection.certified && authorization === undefined) return undefined;
    let authentication = authentications.get(connection);
    if (authentication === undefined) {
      authentication = {};
      authentications.set(connection, authentication);
    }
    return tokens.check(authorization, authentication);
  };

  const check = (received: Received): Refusal | undefined => {
    const refusal = authenticate(received);
    if (refusal !== undefined) return refusal;
    const { stream, connection, headers, payload, size } = received;
    h2.proven(stream, connection);
    return (
      checkPath(headers[":method"], headers[":path"]) ??
      checkHeaders(headers, requireAllHeaders) ??
      checkPayload(String(headers["apns-push-type"]), payload, size)
    );
  };

  const receive = (received: Received) => {
    const { stream, connection, headers, payload } = received;
    const refusal = check(received);
    const token = tokenOf(headers[":path"]);
    const id = String(headers["apns-id"] ?? randomUUID().toUpperCase());
    const answerHeaders: Record<string, string> = { "apns-id": id };
    if (environment === "sandbox") answerHeaders["apns-unique-id"] = randomUUID();
    const seen = { provider: "apns", token, headers, payload, id } as const;
    if (refusal !== undefined) {
      const reply = failure(statusOf(refusal.reason), refusal.reason, answerHeaders);
      log.add({ ...seen, status: reply.status, ...refusal });
      answerStream(stream, reply);
      return;
    }
    const rule = script.match("apns", token);
    if (rule === undefined) {
      log.add({ ...seen, status: 200 });
      answerStream(stream, accepted(answerHeaders));
      return;
    }
    settle({
      rule,
      natural: accepted(answerHeaders),
      scripted: scripted(answerHeaders, now),
      exchange: overStream(stream, () => connection.socket.destroy()),
      record: (answered) => log.add({ ...seen, ...answered }),
      after: timers.after,
    });
  };

  h2.server.on("stream", (stream, headers) => {
    const connection = h2.begin(stream);
    if (connection === undefined) return;
    let size = 0;
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBody) chunks.push(chunk);
    });
    stream.on("end", () => {
      // Node ends what was cut off in the middle, too.
      if (stream.aborted) return;
      const [first] = chunks;
      const whole = chunks.length === 1 ? first : Buffer.concat(chunks);
      receive({ stream, connection, headers, payload: whole?.toString() ?? "", size });
    });
  });

  return {
    name: "apns",
    url: `https://${publicHost}:${await h2.listen(host, port)}`,
    setKeys: tokens.setKeys,
    connectionCount: h2.connectionCount,
    async stop() {
      timers.clear();
      await h2.stop();
    },
  };
}
