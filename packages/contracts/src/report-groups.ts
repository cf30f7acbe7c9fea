import { z } from "zod";
import { type DataOf, defineMessage } from "./envelope.ts";
import { DeviceId, NotificationId, ProjectId } from "./ids.ts";
import { Platform } from "./platforms.ts";

const time = z.iso.datetime();

/** Verified opens of one project that arrived within a few milliseconds of each other. */
export const OpenGroupV1 = defineMessage(
  "OpenGroupV1",
  "push.opens.v1.:projectId",
  z.object({
    projectId: ProjectId,
    opens: z
      .array(
        z.object({
          notificationId: NotificationId,
          deviceId: DeviceId,
          /** Absent: unknown. */
          platform: Platform.optional(),
          openedAt: time,
          /** The id of the button that was pressed, as the device says; absent: none. */
          button: z.string().optional(),
        }),
      )
      .min(1)
      .max(100),
  }),
);
export type OpenGroupV1 = DataOf<typeof OpenGroupV1>;

/** What a device reports of a push beside its open. */
export const ReceiptKind = z.enum(["received", "dismissed"]);
export type ReceiptKind = z.infer<typeof ReceiptKind>;

/** Verified receipts and dismissals of one project that arrived within a few milliseconds of each other. */
export const ReceiptGroupV1 = defineMessage(
  "ReceiptGroupV1",
  "push.receipts.v1.:projectId",
  z.object({
    projectId: ProjectId,
    receipts: z
      .array(
        z.object({
          notificationId: NotificationId,
          deviceId: DeviceId,
          platform: Platform,
          kind: ReceiptKind,
          at: time,
        }),
      )
      .min(1)
      .max(100),
  }),
);
export type ReceiptGroupV1 = DataOf<typeof ReceiptGroupV1>;
