import { hash } from "node:crypto";

/**
 * The `apns-id` of a notification for a device: a UUID (RFC 9562, version 8) made from both ids, so that a repeat carries
 * the id of the first attempt and can be told from another notification.
 */
export function apnsId(notificationId: string, deviceId: string): string {
  const hex = hash("sha256", `${notificationId}/${deviceId}`, "hex");
  const variant = "89ab"[Number.parseInt(hex[16] ?? "0", 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
