import * as contracts from "@herald/contracts";
import { expect, test } from "vitest";
import { choices } from "./choices.ts";

test("options accept what the contracts accept", () => {
  const eventTypes = Object.values(contracts.events)
    // Audit records are not sent to projects.
    .filter((event) => event.ceType !== contracts.AuditRecordedV1.ceType)
    .map(({ ceType }) => ceType);
  const sorted = (values: readonly string[]) => values.toSorted();
  const accepted = Object.fromEntries(Object.entries(choices).map(([name, values]) => [name, sorted(values)]));
  expect(accepted).toEqual({
    deviceStatus: sorted(contracts.DeviceStatus.options),
    platform: sorted(contracts.Platform.options),
    notificationStatus: sorted(contracts.NotificationStatus.options),
    deliveryStatus: sorted(contracts.DeliveryStatus.options),
    messageStatus: sorted(contracts.WebhookMessageStatus.options),
    importFormat: sorted(contracts.ImportFormat.options),
    scope: sorted(contracts.Scope.options),
    role: sorted(contracts.OperatorRole.options),
    projectRole: sorted(contracts.ProjectRole.options),
    environment: sorted(contracts.ApnsEnvironment.options),
    tokenKind: sorted(contracts.FcmTokenKind.options),
    urgency: sorted(contracts.Urgency.options),
    eventType: sorted(eventTypes),
  });
});
