import { hash } from "node:crypto";
import { batchLimits } from "@herald/contracts";

/** The generation of a root row: a batch as registry partitioned it. Each child row, for devices that must wait, is one more. */
export const rootGeneration = 1;

/** The id of the nth batch of a notification with a single page. */
export const rootBatchId = (notificationId: string, n: number): string => `${notificationId}/0/${n}`;

/** A root's id is `<notification>/<page>/<n>`, a child's id is `<notification>/<page>/<n>/<generation>`. */
export const childId = (batchId: string, generation: number): string =>
  `${batchId.split("/").slice(0, 3).join("/")}/${generation}`;

/** A batch id as one token of a subject. */
export const batchKey = (batchId: string): string => batchId.replaceAll("/", "-");

/** The subject of a scheduled wake-up. Each stored batch or notification has its own, so a second wake-up replaces the first. */
export const scheduleSubject = (key: string, generation: number | string): string =>
  `push.sched.v1.${key}.${generation}`;

/** Units of sending capacity that a full batch takes. The smallest batch takes one. */
export const unitsOfBatch = 64;

/**
 * How many units of sending capacity a batch takes. A batch of one device waits as long as a full batch but does less work, so 64 of
 * them run in place of one full batch.
 */
export const unitsOf = (devices: number): number =>
  Math.max(1, Math.ceil((unitsOfBatch * Math.min(devices, batchLimits.devices)) / batchLimits.devices));

/**
 * The `apns-id` of a notification for a device: a UUID (RFC 9562, version 8) derived from both ids. A repeat has the id of the first
 * attempt, which distinguishes it from another notification.
 */
export function apnsId(notificationId: string, deviceId: string): string {
  const hex = hash("sha256", `${notificationId}/${deviceId}`, "hex");
  const variant = "89ab"[Number.parseInt(hex[16] ?? "0", 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
