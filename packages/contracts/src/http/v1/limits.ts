import { z } from "zod";
import { named } from "../../named.ts";

const count = z.number().int().min(0);

/** One limit or quota of a project, in the answer to `GET /admin/v1/projects/{id}/limits`. */
export const ProjectLimit = named("ProjectLimit", {
  name: z
    .enum([
      "token",
      "project",
      "device",
      "sends",
      "dry-runs",
      "queued",
      "queued-bytes",
      "event-streams",
      "exports",
      "devices",
    ])
    .meta({ description: "Where a response has `RateLimit-Policy`, the name in it" }),
  description: z.string().meta({
    description: "What it counts, for people",
    examples: ["Notifications in an hour; dry runs do not count"],
  }),
  limit: count.meta({ examples: [1_000_000] }),
  seconds: count
    .optional()
    .meta({ description: "The window in which it counts. Absent: at any time", examples: [3_600] }),
  used: count.optional().meta({
    description:
      "How much of it is in use. Absent where each token or device has a count of its own, or if unknown now",
    examples: [48_211],
  }),
  counted_by: z.enum(["gateway", "installation"]).meta({
    description: "`gateway`: each gateway counts for itself, and `used` is the count of the one that answers",
  }),
  variable: z
    .string()
    .optional()
    .meta({
      description: "The environment variable that sets it, for all projects. Absent: it is fixed",
      examples: ["HERALD_GATEWAY_QUOTA_SENDS"],
    }),
});
export type ProjectLimit = z.infer<typeof ProjectLimit>;
