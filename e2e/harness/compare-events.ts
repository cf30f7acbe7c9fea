import {
  type DataOf,
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  headerNames,
  type Notification,
  NotificationCancelledV1,
  NotificationCompletedV1,
  NotificationExpiredV1,
  NotificationOpenedV1,
} from "@herald/contracts";
import { readPublished } from "@herald/testing";
import { deliveryKey, type Ledger } from "./ledger.ts";
import type { Project } from "./project.ts";
import type { System } from "./system.ts";

type Contract<Data> = { readonly filter: string; readonly schema: { parse(value: unknown): Data } };

/** The events of one kind in a project, without duplicates. Throws if an event violates its contract. */
export async function eventsOf<Data>({ broker }: System, project: Project, contract: Contract<Data>): Promise<Data[]> {
  const messages = await readPublished(broker, contract.filter.replace("*", project.id));
  const byId = new Map(messages.map(({ headers, body }) => [headers[headerNames.ceId], body]));
  return [...byId.values()].map((body) => contract.schema.parse(JSON.parse(body)));
}

/** The differences between the events on the bus and the answers of the API. */
export async function compareEvents(
  system: System,
  project: Project,
  ledger: Ledger,
  notifications: ReadonlyMap<string, Notification>,
): Promise<string[]> {
  const read = <Data>(contract: Contract<Data>) => eventsOf(system, project, contract);
  const final = [...notifications.values()].filter(({ completed_at }) => completed_at !== undefined);
  return [
    ...compareDeliveries(ledger, await read(DeliveryAcceptedV1), await read(DeliveryFailedV1)),
    ...compareOpens(ledger, await read(NotificationOpenedV1)),
    ...compareEnds(final, [
      ...(await read(NotificationCompletedV1)),
      ...(await read(NotificationCancelledV1)),
      ...(await read(NotificationExpiredV1)),
    ]),
  ];
}

/** Checks that every delivery is published once, with its status. */
function compareDeliveries(
  ledger: Ledger,
  accepted: readonly DataOf<typeof DeliveryAcceptedV1>[],
  failed: readonly DataOf<typeof DeliveryFailedV1>[],
): string[] {
  const published = new Map<string, string[]>();
  const add = (key: string, status: string) => published.set(key, [...(published.get(key) ?? []), status]);
  for (const { notification_id: notificationId, devices } of accepted)
    for (const id of devices) add(deliveryKey(notificationId, id), "accepted");
  for (const { notification_id: notificationId, failures } of failed)
    for (const { device_id: deviceId, status } of failures) add(deliveryKey(notificationId, deviceId), status);
  const problems: string[] = [];
  for (const [key, { status }] of ledger)
    if (status !== "pending" && published.get(key)?.join() !== status)
      problems.push(`${key}: is ${status}, published as ${published.get(key)?.join(" and ") ?? "nothing"}`);
  return problems;
}

function compareOpens(ledger: Ledger, opens: readonly DataOf<typeof NotificationOpenedV1>[]): string[] {
  const published = opens.map(({ notification_id, device_id }) => deliveryKey(notification_id, device_id));
  const twice = published
    .filter((key, index) => published.indexOf(key) !== index)
    .map((key) => `${key}: opened was published twice`);
  const missing = [...ledger].flatMap(([key, { opened_at }]) =>
    (opened_at !== undefined) === published.includes(key)
      ? []
      : [`${key}: opened_at is ${opened_at}, the events disagree`],
  );
  return [...twice, ...missing];
}

type End = { notification_id: string; counts: Record<string, number> };

/** Checks that the end of every notification is published once, with its counts. */
function compareEnds(final: readonly Notification[], ends: readonly End[]): string[] {
  return final.flatMap(({ id, counts }) => {
    const published = ends.filter(({ notification_id }) => notification_id === id);
    if (published.length !== 1) return [`${id}: its end was published ${published.length} times`];
    const { devices, accepted, failed, expired, cancelled, skipped } = counts;
    const expected = { devices, accepted, failed, expired, cancelled, skipped };
    const differs = Object.entries(expected).some(([name, count]) => published[0]?.counts[name] !== count);
    return differs
      ? [`${id}: ended with ${JSON.stringify(expected)}; published: ${JSON.stringify(published[0]?.counts)}`]
      : [];
  });
}
