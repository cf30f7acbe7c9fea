import { randomUUID } from "node:crypto";
import { publish } from "@herald/bus";
import {
  type DeliverBatchV1,
  ExpandedV1,
  type ExpandV1,
  headerNames,
  type MessageContract,
  type NotificationId,
  newNotificationId,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { z } from "zod";
import { type DispatchTest, day, devices } from "./dispatch-fixture.ts";

/** A contract for any data on any subject, as a faulty version might publish it. */
export const raw = (subject: string): MessageContract => ({
  name: "Raw",
  pattern: subject,
  filter: subject,
  schema: z.unknown(),
  subject: () => subject,
});

export const batchOf = (
  projectId: ProjectId,
  notificationId: NotificationId,
  n: number,
  some: number | DeliverBatchV1["devices"],
): DeliverBatchV1 => ({
  batchId: `${notificationId}/0/${n}`,
  projectId,
  notificationId,
  lane: "broadcast",
  platform: "ios",
  devices: typeof some === "number" ? devices(some) : some,
});

/** The command to expand a notification's second page. */
export const secondPage = (projectId: ProjectId, notificationId: NotificationId): ExpandV1 => ({
  projectId,
  notificationId,
  page: 1,
  expansion: { n: 0 },
  fromBucket: 9,
  toBucket: 10,
  targets: ["all"],
  lane: "broadcast",
  expiresAt: new Date(Date.now() + day).toISOString(),
});

/** Actions for tests of dead letters. */
export const deadLetterActions = (dispatch: () => DispatchTest) => ({
  /** Puts a message into the dead letters, as the bus does. Resolves to its id. */
  die: async <Schema extends z.ZodType>(
    durable: string,
    contract: MessageContract<Schema>,
    data: z.output<Schema>,
    { reason = "exhausted", publishedAt = new Date(), sequence = 1, body = data as unknown } = {},
  ): Promise<string> => {
    const letter = await publish(dispatch().bus, raw(`push.dlq.v1.${durable}`), body, {
      id: randomUUID(),
      headers: {
        [headerNames.deadSubject]: contract.subject(data),
        [headerNames.deadReason]: reason,
        [headerNames.deadPublishedAt]: publishedAt.toISOString(),
        [headerNames.deadSequence]: String(sequence),
      },
    });
    return String(letter.seq);
  },

  /** Starts a notification whose expansion dispatch has commanded. */
  started: async () => {
    const projectId = await dispatch().project();
    const id = await dispatch().send(projectId);
    await dispatch().expansion(projectId, id);
    return { projectId, id };
  },

  /** A send that the gateway has accepted but not published. */
  notSent: async (): Promise<SendV1> => ({
    projectId: await dispatch().project(),
    notificationId: newNotificationId(dispatch().now()),
    content: { title: "Hello", targets: ["all"] },
    acceptedAt: dispatch().now().toISOString(),
    expiresAt: new Date(dispatch().now().getTime() + day).toISOString(),
  }),

  /** Publishes the end of an expansion, as registry does. */
  expanded: async (projectId: ProjectId, notificationId: NotificationId, batches: number, count: number) => {
    const data = { projectId, notificationId, n: 0, batches, devices: count, unmatched: [] };
    await publish(dispatch().bus, ExpandedV1, data, { id: `${notificationId}/expanded` });
  },
});
