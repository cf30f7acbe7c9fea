import { z } from "zod";
import { AuditRecordedV1, events } from "../../events.ts";
import { named } from "../../named.ts";
import { Instant } from "./pagination.ts";

/** Events of projects. Events of the installation reach only its own consumers. */
const types = Object.values(events)
  .map(({ ceType }) => ceType)
  .filter((type) => type !== AuditRecordedV1.ceType) as [string, ...string[]];

/** The CloudEvents type of an event: the same string in `ce-type`, in webhooks and in `GET /events`. */
export const EventType = z
  .enum(types, { error: "must be a type of the event catalogue, such as io.herald.notification.opened.v1" })
  .meta({ id: "EventType" });

/** An event over HTTP: the body of a webhook, and an event of `GET /events`. */
export const EventMessage = named("EventMessage", {
  id: z.string().meta({ description: "The event's id (`ce-id`): a repeated event has the same" }),
  type: z.string().meta({
    description: "The event's type (`ce-type`). Later versions add types",
    examples: ["io.herald.notification.opened.v1"],
  }),
  timestamp: z.iso.datetime().meta({ description: "When it happened" }),
  data: z.record(z.string(), z.unknown()).meta({ description: "The event's fields, as in /docs/events" }),
});
export type EventMessage = z.infer<typeof EventMessage>;

/** The query of `GET /events`; all optional. */
export const EventsQuery = z.strictObject({
  types: z
    .string()
    .max(1_000)
    .refine(
      (text) => text.split(",").every((type) => EventType.safeParse(type).success),
      "must be types of the event catalogue with commas between them, such as io.herald.notification.opened.v1,io.herald.device.deleted.v1",
    )
    .optional()
    .meta({
      description: "Event types, separated by commas; absent: all",
      examples: ["io.herald.notification.opened.v1,io.herald.notification.completed.v1"],
    }),
  since: Instant.optional().meta({
    description: "Start time, at most 30 days ago; absent: now. `Last-Event-ID` takes precedence",
  }),
});
