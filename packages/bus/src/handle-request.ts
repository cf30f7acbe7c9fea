import { errors, headerNames, type Reply, type RequestContract } from "@herald/contracts";
import {
  createDeadline,
  describeIssues,
  failSpan,
  HeraldError,
  inSpan,
  runWithDeadline,
  withRequestId,
} from "@herald/kit";
import type { Msg } from "@nats-io/transport-node";
import type { Span } from "@opentelemetry/api";
import type { z } from "zod";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { contextOf, readJson, withRemoteSpan } from "./message-format.ts";
import { runBeside } from "./permit.ts";
import { type GroupedRequest, groupHeader, RequestGroup, replyToGroup } from "./reply-group.ts";
import { sendParts } from "./reply-parts.ts";
import { handleSuspect } from "./suspects.ts";

export type RequestContext = {
  readonly requestId?: string;
  /** Aborted when the requester no longer waits: long work checks it between its steps. */
  readonly signal: AbortSignal;
};

export type RequestListener = {
  /** Takes no more requests; resolves when every accepted request has a reply. */
  stop(): Promise<void>;
};

/** For a request that does not say how long its caller waits. */
const defaultBudgetMs = 5_000;
/** All requests without a project count as one project. */
const noProject = "";

/**
 * Handles the requests of a contract as a member of the service's queue group, fairly between projects. Drops a request whose deadline
 * has passed, and aborts its work at the deadline. A HeraldError is returned as it is; any other error is logged and returned as
 * `internal`, without its text.
 */
export const handleRequest = <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: Bus,
  contract: RequestContract<Request, Answer>,
  handle: (data: z.output<Request>, context: RequestContext) => Promise<z.input<Answer>>,
): RequestListener => {
  const connection = connectionOf(bus);
  const open = new Set<Promise<void>>();

  const reply = async (
    span: Span,
    body: unknown,
    { requestId, budgetMs, suspect }: { requestId: string | undefined; budgetMs: number; suspect?: string | undefined },
  ): Promise<Reply> => {
    const deadline = createDeadline(budgetMs);
    let leave: (() => void) | undefined;
    try {
      const request = parse(contract, body);
      const isHeavy = contract.isHeavy?.(request) === true;
      const gate = isHeavy ? connection.heavyRequests : connection.requests;
      leave = await gate.enter(projectOf(request), 1, { isGone: () => deadline.remainingMs() === 0 });
      const context: RequestContext = {
        ...(requestId === undefined ? {} : { requestId }),
        get signal() {
          return deadline.signal;
        },
      };
      const attempt = async () => {
        // It may have waited for a suspect.
        if (deadline.remainingMs() === 0) throw deadlineExceeded(undefined);
        return handle(request, context);
      };
      const inTurn = () =>
        suspect === undefined
          ? runBeside(connection.suspects.running, attempt)
          : handleSuspect(connection, `${contract.service}.suspect.${contract.name}/${suspect}`, attempt);
      const work = () => runWithDeadline(deadline, inTurn);
      const result = await (requestId === undefined ? work() : withRequestId(requestId, work));
      // To check and to send a long answer costs as much as to read it.
      if (isHeavy && deadline.remainingMs() === 0) throw deadlineExceeded(undefined);
      return { answer: contract.isPlain?.(result) ? result : contract.answer.parse(result) };
    } catch (error) {
      failSpan(span, error);
      const cause = deadline.remainingMs() === 0 ? deadlineExceeded(error) : error;
      return { error: describeError(connection, contract, cause) };
    } finally {
      leave?.();
    }
  };

  const serve = (msg: Msg): Promise<void> =>
    withRemoteSpan(`handle ${contract.name}`, "server", [msg], async (span) => {
      const from = {
        requestId: msg.headers?.get(headerNames.requestId) || undefined,
        budgetMs: budgetOf(msg),
        suspect: suspectOf(msg),
      };
      sendReply(connection, contract.service, msg, await reply(span, readJson(msg.data), from));
    });

  const serveGrouped = ({ origin, budgetMs, data }: GroupedRequest): Promise<Reply> =>
    inSpan(`handle ${contract.name}`, { kind: "server", parent: contextOf(origin) }, (span) =>
      reply(span, data, { requestId: origin.requestId, budgetMs }),
    );

  const serveGroup = async (msg: Msg): Promise<void> => {
    const { group } = RequestGroup.parse(readJson(msg.data));
    await replyToGroup(connection, contract.service, msg, group.map(serveGrouped), sendReply);
  };

  const subscription = connection.nc.subscribe(contract.subject, {
    queue: contract.service,
    callback: (error, msg) => {
      if (error) {
        connection.log.error({ err: error, request: contract.name }, "the subscription to requests failed");
        return;
      }
      const serving = (msg.headers?.has(groupHeader) ? serveGroup(msg) : serve(msg)).catch((err: unknown) =>
        connection.log.error({ err, request: contract.name }, "could not send the reply"),
      );
      open.add(serving);
      void serving.finally(() => open.delete(serving));
    },
  });

  return {
    async stop() {
      if (connection.connected) await subscription.drain().catch(() => subscription.unsubscribe());
      else subscription.unsubscribe();
      await Promise.all(open);
    },
  };
};

/** Reserved for the subject and headers of a reply. */
const roomBytes = 4_096;

/** Sends a reply, in parts if it exceeds the broker's largest message. */
const sendReply = (connection: BusConnection, service: string, { reply: to }: Msg, reply: Reply): void => {
  if (to === undefined || to === "") return;
  const { nc } = connection;
  const bytes = Buffer.from(JSON.stringify(reply));
  const maxBytes = (nc.info?.max_payload ?? 1_048_576) - roomBytes;
  if (bytes.length <= maxBytes) nc.publish(to, bytes);
  else sendParts(connection, service, to, bytes, maxBytes);
};

/** How much longer the caller waits. Ignores the transit time: it is short, and clocks differ. */
const budgetOf = (msg: Msg): number => {
  const sent = Number(msg.headers?.get(headerNames.budgetMs) || Number.NaN);
  return Number.isFinite(sent) ? sent : defaultBudgetMs;
};

/** Part of a key of a bucket. */
const suspectOf = (msg: Msg): string | undefined =>
  /^[\w-]{1,100}$/.exec(msg.headers?.get(headerNames.suspect) ?? "")?.[0];

const parse = <Request extends z.ZodType>({ request }: RequestContract<Request>, body: unknown): z.output<Request> => {
  if (body === undefined) throw new HeraldError("schema", "the request is not JSON");
  const { data, error } = request.safeParse(body);
  if (error) throw new HeraldError("schema", describeIssues(error, { schema: request }), { cause: error });
  return data as z.output<Request>;
};

const projectOf = (request: unknown): string =>
  typeof request === "object" && request !== null && "projectId" in request ? String(request.projectId) : noProject;

/** Replaces the error that the aborted work threw. */
const deadlineExceeded = (cause: unknown): HeraldError =>
  new HeraldError(
    "service-unavailable",
    "the request took longer than its caller waits; ask for less, or try again later",
    { cause, retryAfterSeconds: 1 },
  );

const describeError = ({ log }: BusConnection, { name }: Pick<RequestContract, "name">, error: unknown) => {
  if (!(error instanceof HeraldError)) {
    log.error({ err: error, request: name }, "a request failed");
    return { code: "internal" as const, messages: ["Herald failed to answer"] };
  }
  const { code, messages, retryAfterSeconds } = error;
  if (errors[code].log !== "info") log[errors[code].log]({ err: error, request: name, code }, "a request failed");
  return { code, messages: [...messages], ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
};
