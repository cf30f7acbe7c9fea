import { z } from "zod";
import { changedFields, named, namedBody } from "../../named.ts";

const count = z.number().int().min(0);

const maxPerWindow = 10_000_000;
const mebibyte = 1_048_576;

/** The limits of a project, and what an operator may set each to. */
export const limitRanges = {
  token: { min: 1, max: maxPerWindow },
  project: { min: 1, max: maxPerWindow },
  device: { min: 1, max: maxPerWindow },
  sends: { min: 1, max: 1_000_000_000 },
  "dry-runs": { min: 1, max: 10_000 },
  /** The most that the broker counts in one response. */
  queued: { min: 1, max: 100_000 },
  "queued-bytes": { min: mebibyte, max: 2_048 * mebibyte },
  "event-streams": { min: 0, max: 10_000 },
  exports: { min: 0, max: 100 },
  devices: { min: 1, max: 1_000_000_000 },
} as const satisfies Readonly<Record<string, { readonly min: number; readonly max: number }>>;

export const LimitName = z.enum(
  Object.keys(limitRanges) as [keyof typeof limitRanges, ...(keyof typeof limitRanges)[]],
);
export type LimitName = z.infer<typeof LimitName>;

/** What an operator has set for a project; the others have their defaults. */
export const OwnLimits = z.partialRecord(LimitName, z.number().int().min(0));
export type OwnLimits = z.infer<typeof OwnLimits>;

const settable = ({ min, max }: { readonly min: number; readonly max: number }) =>
  z
    .int()
    .min(min, `must be ${min} to ${max}, or null for the default`)
    .max(max, `must be ${min} to ${max}, or null for the default`)
    .nullable()
    .optional();

/** Body of `PATCH /admin/v1/projects/{id}/limits`. */
export const ChangeLimits = namedBody("ChangeLimits", {
  limits: changedFields(
    Object.fromEntries(LimitName.options.map((name) => [name, settable(limitRanges[name])])) as {
      [Name in LimitName]: ReturnType<typeof settable>;
    },
    { description: "By name; `null` restores the default", examples: [{ sends: 200_000, devices: null }] },
  ),
});

/** One limit or quota of a project, in the answer to `GET /admin/v1/projects/{id}/limits`. */
export const ProjectLimit = named("ProjectLimit", {
  name: LimitName.meta({ description: "Where a response has `RateLimit-Policy`, the name in it" }),
  description: z.string().meta({
    description: "What it counts, for people",
    examples: ["Notifications in an hour; dry runs do not count"],
  }),
  limit: count.meta({ description: "For all gateways together", examples: [200_000] }),
  default: count.meta({ description: "Without a limit of its own", examples: [1_000_000] }),
  seconds: count
    .optional()
    .meta({ description: "The window in which it counts. Absent: at any time", examples: [3_600] }),
  used: count.optional().meta({
    description:
      "How much of it is in use. Absent where each token or device has a count of its own, or if unknown now",
    examples: [48_211],
  }),
  counted_by: z.enum(["gateway", "installation"]).meta({
    description:
      "`gateway`: each gateway counts its part, the limit divided by the live gateways; `used` is the count of the one that answers",
  }),
  variable: z
    .string()
    .optional()
    .meta({
      description: "The environment variable that sets the default. Absent: the default is fixed",
      examples: ["HERALD_GATEWAY_QUOTA_SENDS"],
    }),
});
export type ProjectLimit = z.infer<typeof ProjectLimit>;
