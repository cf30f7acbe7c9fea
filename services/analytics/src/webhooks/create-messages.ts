import type { Delivery } from "@herald/bus";
import { eventTypeOf, headerNames, ProjectId } from "@herald/contracts";
import { type HeardEvent, hears, messageFor } from "./webhook-message.ts";
import type { WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import type { WebhookStore } from "./webhook-store.ts";

/** An event of any type, with all of its fields. */
export type AnyEvent = Delivery<Readonly<Record<string, unknown>>>;

/** Stores what each webhook of their projects gets of some events, each message once, and has them sent. */
export type MakeWebhookMessages = (events: readonly AnyEvent[]) => Promise<void>;

const heard = ({ id, subject, data, publishedAt, header }: AnyEvent, projectId: ProjectId): HeardEvent => {
  const at = new Date(header(headerNames.ceTime) ?? publishedAt);
  const type = eventTypeOf(subject)?.type ?? "";
  return { projectId, id, type, at: Number.isNaN(at.getTime()) ? publishedAt : at, publishedAt, data };
};

export const createMakeWebhookMessages = (
  webhooks: WebhookStore,
  messages: WebhookMessageStore,
  sender: Pick<WebhookSender, "wake">,
  now: () => Date,
): MakeWebhookMessages =>
  async function makeWebhookMessages(events) {
    const ofProjects = Map.groupBy(events, ({ subject }) => eventTypeOf(subject)?.projectId);
    const projectIds = [...ofProjects.keys()].flatMap((id) => ProjectId.safeParse(id).data ?? []);
    const listeners = await webhooks.ofProjects(projectIds);
    const made = listeners.flatMap((webhook) =>
      (ofProjects.get(webhook.projectId) ?? [])
        .map((event) => heard(event, webhook.projectId))
        .filter((event) => hears(webhook, event))
        .map((event) => ({
          ...messageFor(webhook, event),
          // Kept, so that it can be recovered when the webhook is enabled again.
          ...(webhook.disabled === undefined ? {} : { failure: "the webhook was disabled" }),
        })),
    );
    await messages.put(made, now());
    for (const { _id, projectId } of listeners) sender.wake(projectId, _id);
  };
