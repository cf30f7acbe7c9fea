import {
  type DeliveryReason,
  type DeviceId,
  type EventData,
  fromTags,
  type OutboxEvent,
  type Recipient,
} from "@herald/contracts";
import type { Settlement } from "../domain/settle-batch.ts";
import { type BatchFacts, ownerOf } from "./delivery-document.ts";

/** The facts of a settled row. Devices that go on in a child have none yet. */
export const deliveryEvents = (
  batch: BatchFacts,
  devices: readonly Pick<Recipient, "id" | "userId">[],
  { results, resultOf, unregistered }: Pick<Settlement, "results" | "resultOf" | "unregistered">,
  at: Date,
): OutboxEvent[] => {
  const accepted: DeviceId[] = [];
  const users: (string | null)[] = [];
  const failures: EventData<"DeliveryFailedV1">["failures"] = [];
  for (const [index, device] of devices.entries()) {
    const deviceId = device.id;
    const userId = ownerOf(device);
    const result = results[resultOf[index] ?? 0];
    if (result === undefined || result.status === "deferred") continue;
    if (result.status === "accepted") {
      accepted.push(deviceId);
      users.push(userId ?? null);
      continue;
    }
    const { status, reason = "internal" satisfies DeliveryReason, providerReason } = result;
    failures.push({
      device_id: deviceId,
      ...(userId === undefined ? {} : { user_id: userId }),
      status,
      reason,
      ...(providerReason === undefined ? {} : { provider_reason: providerReason }),
    });
  }
  const { projectId, notificationId, platform, tags, _id: batchId } = batch;
  const facts = {
    project_id: projectId,
    notification_id: notificationId,
    ...fromTags(tags),
    at: at.toISOString(),
    batch_id: batchId,
    platform,
  };
  const events: OutboxEvent[] = [];
  if (accepted.length > 0)
    events.push({
      id: `${batchId}/accepted`,
      event: "DeliveryAcceptedV1",
      subject: notificationId,
      at,
      data: { ...facts, devices: accepted, ...(users.some((user) => user !== null) && { users }) },
    });
  if (failures.length > 0)
    events.push({
      id: `${batchId}/failed`,
      event: "DeliveryFailedV1",
      subject: notificationId,
      at,
      data: {
        ...facts,
        failures,
        unregistered: unregistered.map(({ deviceId, tokenHash, at }) => ({
          device_id: deviceId,
          token_hash: tokenHash,
          at: at.toISOString(),
        })),
      },
    });
  return events;
};
