import { AsyncLocalStorage } from "node:async_hooks";
import { headerNames, type Reply, ReplyError, type RequestContract } from "@herald/contracts";
import { createGroupCommit, HeraldError, hasCode, inSpan } from "@herald/kit";
import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import type { z } from "zod";
import { codeOf, notConnected } from "./bus-error.ts";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { currentOrigin, outgoingHeaders, plainHeaders } from "./message-format.ts";
import { type GroupReplies, groupHeader } from "./reply-group.ts";
import { readParts } from "./reply-parts.ts";

/** The slowest list takes one or two seconds. */
const requestTimeoutMs = 5_000;
/** The handler's share of the timeout. The rest is for the round trip, so that the caller receives the reason of a dropped request. */
const budgetShare = 0.95;

type SendOptions = {
  readonly timeoutMs?: number;
  /** An id of letters, digits, `_` and `-`: the sender repeats this request, and it may be the reason why processes died. */
  readonly suspect?: string;
};

/**
 * Sends a request to the service that handles `contract`. Throws the HeraldError of its handler with the same code and messages,
 * service-unavailable when no reply comes in time, bus-unavailable when the bus is not connected, and process-crashed when
 * processes died over a `suspect`.
 */
export const sendRequest = async <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: Bus,
  contract: RequestContract<Request, Answer>,
  data: z.input<Request>,
  { timeoutMs = requestTimeoutMs, suspect }: SendOptions = {},
): Promise<z.output<Answer>> => {
  const connection = connectionOf(bus);
  const body = JSON.stringify(contract.request.parse(data));
  return observed(connection, contract, () => sendAlone(connection, contract, body, timeoutMs, suspect));
};

/**
 * A message costs both services and the broker more than its content. A single request is sent at once. Under load, the requests of 16 ms
 * share a message, and their reads and writes share database commands. CPU of an unchanged registration in all processes: 1,407 µs with
 * 4 ms, 960 with 8; in a later pair 867 with 8 and 736 with 16. The number of groups in flight is not limited, because the handling
 * service limits its concurrency.
 */
const groups = { max: 64, concurrent: 1, intervalMs: 16, groupBytes: 524_288 };

/**
 * {@link sendRequest} for a contract with many concurrent requests: simultaneous requests share a message. Each has its own reply, error,
 * request id and trace, counts towards the share of its project, and does not wait for slow ones. `intervalMs`:
 * the shortest time between two messages; 16 unless given.
 */
export const sendGroupedRequest = <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: () => Bus,
  contract: RequestContract<Request, Answer>,
  { intervalMs = groups.intervalMs } = {},
): ((data: z.input<Request>) => Promise<z.output<Answer>>) => {
  type Waiting = { readonly json: string; readonly alone: () => Promise<z.output<Answer>> };
  const budgetMs = Math.floor(requestTimeoutMs * budgetShare);

  const commit = createGroupCommit<Waiting, Promise<z.output<Answer>>>(
    async (waiting) => {
      const connection = connectionOf(bus());
      if (!connection.connected) throw notConnected();
      if (waiting.length === 1) return waiting.map(({ alone }) => alone());
      const replies = waiting.map(() => Promise.withResolvers<Reply | undefined>());
      void sendGroup(
        connection,
        contract,
        waiting.map(({ json }) => json),
        replies,
      );
      return waiting.map(async ({ alone }, index) => {
        const reply = await replies[index]?.promise;
        return reply ? unwrap(contract, reply) : alone();
      });
    },
    { ...groups, intervalMs },
  );

  return async (data) => {
    const body = JSON.stringify(contract.request.parse(data));
    return observed(connectionOf(bus()), contract, () => {
      const json = `{"origin":${JSON.stringify(currentOrigin())},"budgetMs":${budgetMs},"data":${body}}`;
      const runInContext = AsyncLocalStorage.snapshot();
      const alone = () => runInContext(() => sendAlone(connectionOf(bus()), contract, body, requestTimeoutMs));
      return commit({ json, alone }, Buffer.byteLength(json));
    });
  };
};

/** Records a client span and a duration of one request. */
const observed = async <Answer>(
  { telemetry }: BusConnection,
  { service, name }: Pick<RequestContract, "service" | "name">,
  work: () => Promise<Answer>,
): Promise<Answer> => {
  const startedAt = performance.now();
  let outcome = "answered";
  const attributes = { "rpc.system": "nats", "rpc.service": service, "rpc.method": name };
  try {
    return await inSpan(`request ${name}`, { kind: "client", attributes }, work);
  } catch (error) {
    outcome = codeOf(error);
    throw error;
  } finally {
    telemetry.requestDuration.record((performance.now() - startedAt) / 1000, { request: name, outcome });
  }
};

const sendAlone = async <Answer extends z.ZodType>(
  connection: BusConnection,
  contract: RequestContract<z.ZodType, Answer>,
  body: string,
  timeout: number,
  suspect?: string,
): Promise<z.output<Answer>> => {
  const headers = outgoingHeaders({
    [headerNames.budgetMs]: String(Math.floor(timeout * budgetShare)),
    ...(suspect !== undefined && { [headerNames.suspect]: suspect }),
  });
  const { service, subject } = contract;
  return unwrap(contract, await roundTrip(connection, { service, subject, body, headers }, timeout));
};

/**
 * Sends requests in one message. Settles each with its own reply; with undefined if their replies were too large together. If that fails,
 * rejects the requests without a reply.
 */
const sendGroup = async (
  connection: BusConnection,
  { service, subject }: Pick<RequestContract, "service" | "subject">,
  requests: readonly string[],
  replies: readonly PromiseWithResolvers<Reply | undefined>[],
): Promise<void> => {
  let isTaken = false;
  try {
    const endsAt = performance.now() + requestTimeoutMs;
    let next = { subject, body: `{"group":[${requests.join(",")}]}`, headers: plainHeaders({ [groupHeader]: "1" }) };
    for (;;) {
      const timeout = Math.max(1, endsAt - performance.now());
      const reply = await roundTrip(connection, { service, ...next }, timeout);
      if ("error" in reply) {
        for (const { resolve } of replies) resolve(undefined);
        return;
      }
      isTaken = true;
      const { replies: ready, rest } = reply.answer as GroupReplies;
      for (const [index, one] of ready) replies[index]?.resolve(one);
      if (rest === undefined) break;
      next = { subject: rest, body: "", headers: plainHeaders({}) };
    }
    throw new Error(`${service} left out a reply of a group`);
  } catch (error) {
    // The service has taken the group: if no service takes the request for the rest, it has ended.
    const failure = isTaken && hasCode(error, "service-unavailable") ? noReply(service, error) : error;
    // Has no effect on replies that are settled.
    for (const { reject } of replies) reject(failure);
  }
};

/**
 * Sends a request and resolves with its reply. Rejects with bus-unavailable as soon as the connection is down or lost, because the client
 * would keep the request and send it after its sender has given up. Rejects with the client's own errors otherwise.
 */
export const requestReply = (
  connection: BusConnection,
  subject: string,
  body: Uint8Array | string,
  headers: MsgHdrs,
  timeout: number,
): Promise<Msg> => {
  if (!connection.connected) return Promise.reject(notConnected());
  return new Promise((resolve, reject) => {
    const lost = () => reject(notConnected());
    connection.waiting.add(lost);
    const replied = connection.nc.request(subject, body, { timeout, headers }).then(resolve, reject);
    void replied.finally(() => connection.waiting.delete(lost));
  });
};

/** Sends a request and resolves with its whole reply. Rejects as {@link requestReply} does. */
const requestAnswer = async (
  connection: BusConnection,
  subject: string,
  body: string,
  headers: MsgHdrs,
  timeout: number,
): Promise<Reply> => {
  const first = await requestReply(connection, subject, body, headers, timeout);
  // Only the first of several parts has headers.
  if (first.headers === undefined) return first.json();
  return readParts(first, (rest, part) => requestReply(connection, rest, part, outgoingHeaders(), timeout));
};

type Outgoing = Pick<RequestContract, "service" | "subject"> & { readonly body: string; readonly headers: MsgHdrs };

/** Sends one message and resolves to the whole reply. Throws service-unavailable when none comes in time, or bus-unavailable. */
const roundTrip = async (connection: BusConnection, { service, subject, body, headers }: Outgoing, timeout: number) => {
  try {
    return await requestAnswer(connection, subject, body, headers, timeout);
  } catch (cause) {
    if (cause instanceof HeraldError) throw cause;
    throw noReply(service, cause);
  }
};

const noReply = (service: string, cause: unknown): HeraldError =>
  new HeraldError("service-unavailable", `${service} does not answer`, { cause });

/** Returns the answer of a reply, or throws the HeraldError that it carries. */
const unwrap = <Answer extends z.ZodType>(contract: RequestContract<z.ZodType, Answer>, reply: Reply) => {
  if ("error" in reply) throw errorOf(reply.error);
  if (contract.isPlain?.(reply.answer)) return reply.answer as z.output<Answer>;
  const { data, error } = contract.answer.safeParse(reply.answer);
  if (error)
    throw new HeraldError("internal", `${contract.name}: the answer does not match its contract`, { cause: error });
  return data as z.output<Answer>;
};

const errorOf = (error: unknown): HeraldError => {
  const { code, messages, retryAfterSeconds } = ReplyError.parse(error);
  return new HeraldError(code, messages, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
};
