import { z } from "zod";
import { named, namedBody } from "../../named.ts";
import { Kind } from "../../tags.ts";
import { Name } from "./admin.ts";
import { QuietHours } from "./quiet-hours.ts";

/** `sends`: the most that a cap may allow, because each of them is stored. */
export const kindLimits = { perProject: 100, sends: 50 } as const;

export const CapWindow = z.enum(["hour", "day", "week"]);
export type CapWindow = z.infer<typeof CapWindow>;

export const FrequencyCap = z
  .strictObject({
    count: z.int().min(1, `must be 1 to ${kindLimits.sends}`).max(kindLimits.sends, `must be 1 to ${kindLimits.sends}`),
    per: CapWindow,
  })
  .meta({
    id: "FrequencyCap",
    description:
      "The maximum of notifications of the kind that a person gets in an hour, a day or a week from Monday, in the project's time zone. A device without a user counts alone",
    examples: [{ count: 2, per: "day" }],
  });
export type FrequencyCap = z.infer<typeof FrequencyCap>;

const settings = {
  title: Name.meta({ description: "What people read where they switch it off", examples: ["Offers"] }),
  on_by_default: z.boolean().meta({ description: "Whether devices get it that have no preference for it" }),
  critical: z.boolean().meta({
    description:
      "People cannot switch it off, and neither quiet hours nor a cap apply: for what they must know, such as a security alert",
  }),
  quiet_hours: QuietHours.nullable().meta({
    description: "Instead of the project's; `null`: none. Absent: the project's",
  }),
  frequency_cap: FrequencyCap,
};

/** Body of `PUT /admin/v1/projects/{id}/kinds/{kind}`, which replaces what was declared before. */
export const PutKind = namedBody("PutKind", {
  kind: z.strictObject({
    title: settings.title,
    on_by_default: settings.on_by_default.default(true),
    critical: settings.critical.default(false),
    quiet_hours: settings.quiet_hours.optional(),
    frequency_cap: settings.frequency_cap.optional().meta({ description: "Absent: any number" }),
  }),
});

/** A kind that the project has declared. */
export const DeclaredKind = named("DeclaredKind", {
  kind: Kind,
  title: settings.title,
  on_by_default: settings.on_by_default,
  critical: settings.critical,
  quiet_hours: settings.quiet_hours.optional(),
  frequency_cap: settings.frequency_cap.optional(),
});
export type DeclaredKind = z.infer<typeof DeclaredKind>;
