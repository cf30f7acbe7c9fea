import { headerNames, ReplyError, type RequestContract } from "@herald/contracts";
import { HeraldError, inSpan } from "@herald/kit";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { z } from "zod";
import { codeOf } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { outgoingHeaders } from "./message-headers.ts";
import { readReply } from "./reply-parts.ts";
import { request } from "./request.ts";

/** The slowest list takes one or two seconds. */
export const requestTimeoutMs = 5_000;
/** The rest is for the round trip, so that the caller learns why its request was dropped. */
export const budgetShare = 0.95;

/**
 * Sends a request to the service that handles `contract`. Throws the HeraldError of its handler with the same code and messages,
 * service-unavailable when no reply comes in time, and bus-unavailable when the bus is not connected.
 */
export const sendRequest = async <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: Bus,
  contract: RequestContract<Request, Answer>,
  data: z.input<Request>,
  options: { readonly timeoutMs?: number } = {},
): Promise<z.output<Answer>> => {
  const connection = connectionOf(bus);
  const body = JSON.stringify(contract.request.parse(data));
  const startedAt = performance.now();
  const observe = (outcome: string) =>
    connection.telemetry.requestDuration.record((performance.now() - startedAt) / 1000, {
      request: contract.name,
      outcome,
    });
  const attributes = { "rpc.system": "nats", "rpc.service": contract.service, "rpc.method": contract.name };
  try {
    const answer = await inSpan(`request ${contract.name}`, { kind: "client", attributes }, async () => {
      const timeout = options.timeoutMs ?? requestTimeoutMs;
      const headers = outgoingHeaders({ [headerNames.budgetMs]: String(Math.floor(timeout * budgetShare)) });
      const { service, subject } = contract;
      return unwrap(contract, await roundTrip(connection, { service, subject, body, headers }, timeout));
    });
    observe("answered");
    return answer;
  } catch (error) {
    observe(codeOf(error));
    throw error;
  }
};

type Outgoing = {
  readonly service: string;
  readonly subject: string;
  readonly body: string;
  readonly headers: MsgHdrs;
};

/** Sends one message and resolves to the whole reply. Throws service-unavailable when none comes in time, or bus-unavailable. */
export const roundTrip = async (
  connection: Connection,
  { service, subject, body, headers }: Outgoing,
  timeout: number,
): Promise<unknown> => {
  try {
    return await readReply(connection, await request(connection, subject, body, headers, timeout), timeout);
  } catch (cause) {
    if (cause instanceof HeraldError) throw cause;
    throw new HeraldError("service-unavailable", `${service} does not answer`, { cause });
  }
};

/** Returns the answer of a reply, or throws the HeraldError that it carries. */
export const unwrap = <Answer extends z.ZodType>(
  contract: RequestContract<z.ZodType, Answer>,
  reply: unknown,
): z.output<Answer> => {
  if (typeof reply === "object" && reply !== null && "error" in reply) {
    const { code, messages, retryAfterSeconds } = ReplyError.parse(reply.error);
    throw new HeraldError(code, messages, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  }
  const answer = typeof reply === "object" && reply !== null && "answer" in reply ? reply.answer : undefined;
  const parsed = contract.answer.safeParse(answer);
  if (!parsed.success) {
    throw new HeraldError("internal", `${contract.name}: the answer does not match its contract`, {
      cause: parsed.error,
    });
  }
  return parsed.data as z.output<Answer>;
};
