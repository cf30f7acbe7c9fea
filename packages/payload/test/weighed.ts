import type { NotificationContent } from "@herald/contracts";

export const weighed = (content: NotificationContent) => ({
  content,
  contentBytes: Buffer.byteLength(JSON.stringify(content)),
});
