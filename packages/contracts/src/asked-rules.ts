import { z } from "zod";
import { Kind } from "./tags.ts";

/** What the rules of a project need to know of the recipients of a send. Absent: nothing is added to them. */
export const AskedRules = z.object({
  /** Marks the devices whose own or whose user's choice is against the kind. `on`: whether those without a choice get it. */
  kind: z.object({ name: Kind, on: z.boolean() }).optional(),
  /** Adds the time zones of devices, and the quiet hours of their users. */
  hours: z.literal(true).optional(),
});
export type AskedRules = z.infer<typeof AskedRules>;
