import type { Delivery } from "@herald/bus";
import { eventTypeOf, headerNames, ProjectId } from "@herald/contracts";
import { isSubscribed, messageFor, type ReceivedEvent } from "./webhook-message.ts";
import type { WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import type { WebhookStore } from "./webhook-store.ts";

type AnyEvent = Delivery<Readonly<Record<string, unknown>>>;

/** Stores a message for each event and subscribed webhook, once, and has it sent. */
export type CreateMessages = (events: readonly AnyEvent[]) => Promise<void>;

const receivedEvent = (event: AnyEvent, projectId: ProjectId): ReceivedEvent => {
  const { id, subject, data, publishedAt, header } = event;
  const at = new Date(header(headerNames.ceTime) ?? publishedAt);
  const type = eventTypeOf(subject)?.type ?? "";
  return { projectId, id, type, at: Number.isNaN(at.getTime()) ? publishedAt : at, publishedAt, data };
};

export const createCreateMessages =
  (
    webhooks: WebhookStore,
    messages: WebhookMessageStore,
    sender: Pick<WebhookSender, "sendNow">,
    now: () => Date,
  ): CreateMessages =>
  async (events) => {
    const byProject = Map.groupBy(events, ({ subject }) => eventTypeOf(subject)?.projectId);
    const projectIds = [...byProject.keys()].flatMap((id) => ProjectId.safeParse(id).data ?? []);
    const found = await webhooks.ofProjects(projectIds);
    const created = found.flatMap((webhook) =>
      (byProject.get(webhook.projectId) ?? [])
        .map((event) => receivedEvent(event, webhook.projectId))
        .filter((event) => isSubscribed(webhook, event))
        .map((event) => ({
          ...messageFor(webhook, event),
          // Stored, so that it can be recovered when the webhook is enabled again.
          ...(webhook.disabled && { failure: "the webhook was disabled" }),
        })),
    );
    await messages.put(created, now());
    for (const { _id, projectId } of found) sender.sendNow(projectId, _id);
  };
