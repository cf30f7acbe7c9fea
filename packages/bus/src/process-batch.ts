import { cutText, deliveryGuard, type ErrorCode, errors, headerNames, ProjectId } from "@herald/contracts";
import { failSpan, HeraldError, isUnavailable, retryWhileUnavailable, withRequestId } from "@herald/kit";
import { InvalidArgumentError } from "@nats-io/transport-node";
import type { Span } from "@opentelemetry/api";
import { codeOf } from "./bus-error.ts";
import { type BusConnection, whenConnected } from "./connect.ts";
import {
  deliveriesOfMessage,
  type Handler,
  type MessageDelivery,
  type MessagePart,
  type ParsedMessage,
  type ReceivedDelivery,
  streamOf,
} from "./define-handler.ts";
import { brokerHeaders, keptPrefix, outgoingHeaders, withRemoteSpan } from "./message-format.ts";
import { serviceOf } from "./permissions/index.ts";
import { holdDelayMs, type Permit, runBeside } from "./permit.ts";
import { requestAck } from "./publish.ts";
import type { Received } from "./received-message.ts";
import { handleSuspect, suspectFromDelivery } from "./suspects.ts";

/** A message in this process, from its receipt to its settlement. */
export type Task = ParsedMessage & {
  readonly receivedAt: number;
  /** When the ack wait last started (`performance.now()`): at the delivery or at the last progress signal. */
  signalledAt: number;
  /** Why it reaches no handler: it is not JSON, or does not match the contract. */
  readonly malformed?: string | undefined;
  settled: boolean;
  blocked: boolean;
};

/** The messages of one handler call: one message, or several valid ones. A joined message is several. */
type DeliveryBatch = {
  readonly connection: BusConnection;
  readonly handler: Handler;
  readonly tasks: readonly Task[];
  readonly permit: Permit;
  readonly deliveries: readonly ReceivedDelivery[];
};

/** The result of handling a message. */
type Settlement =
  /** Handled: ack. */
  | { readonly kind: "acked" }
  /** It can never succeed: dead letter, then term(reason). */
  | {
      readonly kind: "dead_lettered";
      readonly reason: ErrorCode | "exhausted";
      readonly detail: string;
      readonly error?: unknown;
    }
  /** Retried later: nak with a delay. */
  | { readonly kind: "retried"; readonly delayMs: number; readonly error: unknown }
  /** The batch failed: each of its messages, and each event of a joined message, is handled alone. */
  | { readonly kind: "split" };

/** Handles a batch and settles its messages in a consumer span. A single message also runs under the id of the request that caused it. */
export const processBatch = (given: Omit<DeliveryBatch, "deliveries">): Promise<Settlement> => {
  const { handler, tasks, permit } = given;
  const deliveries = tasks.flatMap((task) =>
    deliveriesOfMessage(handler, task, { permit, deadLetter: deadLetterOf(given, task.received) }),
  );
  const batch = { ...given, deliveries };
  return withRemoteSpan(`process ${handler.pattern}`, "consumer", deliveries, async (span) => {
    const requestId = deliveries.length === 1 ? deliveries[0]?.header(headerNames.requestId) : undefined;
    const settlement = await (requestId
      ? withRequestId(requestId, () => settleMessages(batch))
      : settleMessages(batch));
    describe(span, batch, settlement);
    return settlement;
  });
};

const settleMessages = async (batch: DeliveryBatch): Promise<Settlement> => {
  const { connection, handler, tasks, permit } = batch;
  let settlement = await attempt(batch);
  if (settlement.kind === "split") return settlement;
  // A dead letter that fails must not become another dead letter, endlessly.
  if (settlement.kind === "dead_lettered" && streamOf(handler) !== "PUSH_DLQ")
    settlement = await deadLetter(batch, settlement);
  // While the connection is down the client would drop the ack, and the broker would redeliver a handled message.
  await whenConnected(connection, permit.signal);
  for (const task of tasks) if (!task.settled) settle(task, settlement);
  log(batch, settlement);
  return settlement;
};

/** Runs the handler and retries it while a dependency is unavailable. */
const attempt = async ({ connection, handler, tasks, permit, deliveries }: DeliveryBatch): Promise<Settlement> => {
  const alone = tasks.length === 1 && tasks[0]?.events === undefined ? tasks[0] : undefined;
  if (alone?.malformed !== undefined) return { kind: "dead_lettered", reason: "schema", detail: alone.malformed };
  const deliveryCount = alone?.received.deliveryCount ?? 1;
  // A hundred deliveries did not settle the message: it may crash the process.
  if (deliveryCount > deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: "given up by the process each time" };

  const handle = () => handler.handle(deliveries);
  const isSuspect = alone !== undefined && deliveryCount >= suspectFromDelivery;
  try {
    await retryWhileUnavailable(
      () =>
        isSuspect
          ? handleSuspect(connection, suspectKey(handler, alone), handle)
          : runBeside(connection.suspects.running, handle),
      (error, tries) => permit.wait(holdDelayMs(codeOf(error), tries)),
    );
    return { kind: "acked" };
  } catch (error) {
    return alone === undefined && !isUnavailable(error) ? { kind: "split" } : settlementOf(error, deliveryCount);
  }
};

const suspectKey = ({ durable }: Handler, { received }: Task): string =>
  `${serviceOf(durable)}.suspect.${durable}/${received.key}`;

/** Copies a part of a message to the dead letters if its error says that it can never succeed. */
const deadLetterOf =
  (batch: Pick<DeliveryBatch, "connection" | "handler">, received: Received): MessageDelivery<unknown>["deadLetter"] =>
  async (part, error) => {
    const settlement = settlementOf(error, received.deliveryCount);
    if (settlement.kind !== "dead_lettered") return false;
    await publishDeadLetter(batch, received, settlement, part);
    const { durable } = batch.handler;
    const { reason, detail } = settlement;
    const { subject } = part;
    batch.connection.log.error({ durable, subject, reason, detail, err: error }, "part of a message dead-lettered");
    return true;
  };

/** How a handler's error settles its message. While a dependency is unavailable, this process retries; when it stops, another one does. */
export const settlementOf = (error: unknown, deliveryCount: number): Settlement => {
  const code = codeOf(error);
  const { retry } = errors[code];
  if (retry === "never") return { kind: "dead_lettered", reason: code, detail: detailOf(error), error };
  if (retry === "unavailable") return { kind: "retried", delayMs: retryDelayMs(1), error };
  if (deliveryCount >= deliveryGuard)
    return { kind: "dead_lettered", reason: "exhausted", detail: detailOf(error), error };
  return { kind: "retried", delayMs: retryDelayMs(deliveryCount), error };
};

/** Texts of HeraldErrors are safe to show. Other errors may quote the content, so only their name is kept. */
const detailOf = (error: unknown): string => {
  if (error instanceof HeraldError) return error.message;
  return error instanceof Error ? error.name : "unknown error";
};

/** Doubles from 250 ms to 30 s, plus up to as much jitter: a hundred deliveries take over an hour. */
export const retryDelayMs = (deliveryCount: number, random = Math.random): number => {
  const base = Math.min(30_000, 250 * 2 ** Math.min(deliveryCount - 1, 10));
  return base + base * random();
};

type Dead = Extract<Settlement, { kind: "dead_lettered" }>;

/** Copies messages that can never succeed to the dead letters. While that fails, they are retried, not terminated. */
const deadLetter = async (batch: DeliveryBatch, dead: Dead): Promise<Settled> => {
  try {
    for (const { received } of batch.tasks) await publishDeadLetter(batch, received, dead);
    return dead;
  } catch (error) {
    return { kind: "retried", delayMs: retryDelayMs(batch.tasks[0]?.received.deliveryCount ?? 1), error };
  }
};

/** `part`: only this of the message, as if it had come alone. */
const publishDeadLetter = async (
  { connection, handler }: Pick<DeliveryBatch, "connection" | "handler">,
  received: Received,
  { reason, detail }: Dead,
  part?: MessagePart,
): Promise<void> => {
  const body = part ? JSON.stringify(part.data) : received.body;
  const subject = `push.dlq.v1.${handler.durable}`;
  const facts = {
    // The same id for every delivery, so that a crash before `term` creates no second dead letter.
    [brokerHeaders.messageId]: `${handler.durable}/${received.key}${part ? `/${part.key}` : ""}`,
    [headerNames.deadSubject]: part?.subject ?? received.subject,
    [headerNames.deadStream]: streamOf(handler),
    [headerNames.deadSequence]: String(received.sequence),
    [headerNames.deadReason]: reason,
    [headerNames.deadDetail]: oneLine(detail),
    [headerNames.deadDeliveries]: String(received.deliveryCount),
    [headerNames.deadAt]: new Date().toISOString(),
    [headerNames.deadPublishedAt]: received.publishedAt.toISOString(),
  };
  try {
    await requestAck(connection, subject, body, outgoingHeaders({ ...originals(received), ...facts }));
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    // The body has the largest size that the broker accepts, so it no longer fits beside these headers.
    const bytes = Buffer.byteLength(body);
    const without = {
      ...facts,
      [headerNames.deadDetail]: `${facts[headerNames.deadDetail]} (a body of ${bytes} bytes, left out)`,
      [headerNames.deadBodyBytes]: String(bytes),
    };
    await requestAck(connection, subject, "", outgoingHeaders(without));
  }
};

/** The message's own headers. Broker headers, such as its id, are renamed so that they have no effect. */
const originals = ({ headers }: Received): Record<string, string> => {
  const kept: Record<string, string> = {};
  for (const name of headers?.keys() ?? []) {
    // Attributes of an event in a batch may have several lines.
    kept[name.startsWith("Nats-") ? `${keptPrefix}${name}` : name] = (headers?.get(name) ?? "").replaceAll(
      /[\r\n]+/g,
      " ",
    );
  }
  return kept;
};

/** A header is a single line. */
const oneLine = (text: string): string => cutText(text.replaceAll(/[\r\n]+/g, " "), 500);

type Settled = Exclude<Settlement, { kind: "split" }>;

const settle = (task: Task, settlement: Settled): void => {
  task.settled = true;
  const { received } = task;
  if (settlement.kind === "acked") received.ack();
  else if (settlement.kind === "dead_lettered") received.term(settlement.reason);
  else received.nak(settlement.delayMs);
};

/** Writes one log line and one count for each settled message: ids and outcome, never content. */
const log = ({ connection, handler, tasks, permit, deliveries }: DeliveryBatch, settlement: Settled): void => {
  const { durable } = handler;
  connection.telemetry.settled.add(deliveries.length, { durable, outcome: settlement.kind });
  // Record only the oldest message of a batch: all arrive within the batch wait, and recording each would cost more than handling it.
  const oldest = Math.min(...tasks.map(({ receivedAt }) => receivedAt));
  connection.telemetry.processDuration.record((performance.now() - oldest) / 1000, { durable });
  const level = levelOf(settlement);
  if (!connection.log.isLevelEnabled(level)) return;
  for (const { id, data, deliveryCount } of deliveries)
    connection.log[level](
      {
        durable,
        outcome: settlement.kind,
        ms: Math.round(performance.now() - oldest),
        messageId: id,
        projectId: projectOf(data),
        ...(deliveryCount > 1 ? { deliveries: deliveryCount } : {}),
        ...(permit.holds() > 0 ? { holds: permit.holds() } : {}),
        ...(settlement.kind === "dead_lettered" ? { reason: settlement.reason, detail: settlement.detail } : {}),
        ...("error" in settlement && settlement.error !== undefined ? { err: settlement.error } : {}),
      },
      "message settled",
    );
};

const levelOf = (settlement: Settled): "debug" | "warn" | "error" => {
  if (settlement.kind === "acked") return "debug";
  if (settlement.kind === "dead_lettered") return "error";
  return errors[codeOf(settlement.error)].log === "error" ? "error" : "warn";
};

/** The project id of a message's data, for the log. Undefined when the field is not a valid id. */
export const projectOf = (data: unknown): string | undefined => {
  if (typeof data !== "object" || data === null) return undefined;
  const { projectId, project_id = projectId } = data as { projectId?: unknown; project_id?: unknown };
  return ProjectId.safeParse(project_id).data;
};

const describe = (span: Span, { handler, permit, deliveries }: DeliveryBatch, settlement: Settlement): void => {
  span.setAttributes({
    "messaging.system": "nats",
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.destination.template": handler.pattern,
    "messaging.consumer.group.name": handler.durable,
    "messaging.batch.message_count": deliveries.length,
    "herald.outcome": settlement.kind,
    "herald.holds": permit.holds(),
  });
  if (settlement.kind === "dead_lettered" || settlement.kind === "retried")
    failSpan(span, "error" in settlement ? settlement.error : undefined);
};
