import { z } from "zod";
import { type EventContract, events } from "../../events.ts";

/** `herald.notification.opened.v1` as `notification.opened`: how HTTP names what NATS has in `ce-type`. */
const typeOf = ({ ceType }: Pick<EventContract, "ceType">): string => ceType.split(".").slice(1, -1).join(".");

const types = Object.values(events).map(typeOf) as [string, ...string[]];

/** The type of an event, as webhooks and the stream of events name it. */
export const EventType = z
  .enum(types, { error: "must be a type of the event catalogue, such as notification.opened" })
  .meta({ id: "EventType" });
export type EventType = z.infer<typeof EventType>;

/** An event as it leaves Herald over HTTP: what a webhook posts and what the stream of events shows. */
export const EventMessage = z
  .object({
    id: z.string().meta({ description: "`ce-id` of the event: one that comes again has the same" }),
    type: z.string().meta({ description: "Its type; later versions add some", examples: ["notification.opened"] }),
    timestamp: z.iso.datetime().meta({ description: "When it happened" }),
    data: z.record(z.string(), z.unknown()).meta({ description: "As the event catalogue (/asyncapi.json) has it" }),
  })
  .meta({ id: "EventMessage" });
export type EventMessage = z.infer<typeof EventMessage>;

const prefix = "push.evt.v1.";

/** The types of events on a subject such as `push.evt.v1.<project>.<entity>.<past tense>`; undefined for any other subject. */
export const eventTypeOf = (subject: string): { projectId: string; type: string } | undefined => {
  if (!subject.startsWith(prefix)) return undefined;
  const afterProject = subject.indexOf(".", prefix.length);
  const afterEntity = subject.indexOf(".", afterProject + 1);
  if (afterProject < 0 || afterEntity < 0 || subject.includes(".", afterEntity + 1)) return undefined;
  return { projectId: subject.slice(prefix.length, afterProject), type: subject.slice(afterProject + 1) };
};

const known: ReadonlySet<string> = new Set(types);

/** The query of `GET /events`; all optional. */
export const EventsQuery = z.strictObject({
  types: z
    .string()
    .max(1_000)
    .refine(
      (text) => text.split(",").every((type) => known.has(type)),
      "must be types of the event catalogue with commas between them, such as notification.opened,device.deleted",
    )
    .optional()
    .meta({
      description: "Only these, with commas between them; absent: all",
      examples: ["notification.opened,notification.completed"],
    }),
  since: z.iso
    .datetime({ offset: true, error: "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00Z" })
    .optional()
    .meta({ description: "From when on, at most 30 days ago; absent: from now. `Last-Event-ID` goes before it" }),
});
export type EventsQuery = z.infer<typeof EventsQuery>;
