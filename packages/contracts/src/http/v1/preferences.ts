import { z } from "zod";
import { named, namedBody } from "../../named.ts";
import { Kind } from "../../tags.ts";
import { kindLimits } from "./kinds.ts";
import { OwnQuietHours } from "./quiet-hours.ts";

const kinds = z
  .record(Kind, z.boolean(), { error: "must be a JSON object" })
  .refine(
    (all) => Object.keys(all).length <= kindLimits.perProject,
    `at most ${kindLimits.perProject} kinds are accepted`,
  )
  .meta({
    maxProperties: kindLimits.perProject,
    description:
      "By kind, whether it is wanted. Replaces all choices made before: a kind that is not named follows its default",
    examples: [{ offers: false }],
  });

/** Body of `PUT /devices/{id}/preferences`. */
export const PutDevicePreferences = namedBody("PutDevicePreferences", { preferences: z.strictObject({ kinds }) });

/** Body of `PUT /users/{user}/preferences`. */
export const PutUserPreferences = namedBody("PutUserPreferences", {
  preferences: z.strictObject({
    kinds,
    quiet_hours: OwnQuietHours.optional().meta({
      description: "In the time zone of each device; notifications wait until they end. Absent: none",
    }),
  }),
});

export const KindPreference = named("KindPreference", {
  kind: Kind,
  title: z.string().meta({ examples: ["Offers"] }),
  on: z.boolean().meta({ description: "Whether the kind is sent to the device, or to devices of the user" }),
  critical: z.boolean().meta({ description: "It is always on" }),
  set_by: z
    .enum(["device", "user", "default"])
    .meta({ description: "Whose choice `on` is. Off beats on, and on beats the default" }),
});

export const Preferences = named("Preferences", {
  kinds: z.array(KindPreference).meta({ description: "Every kind that the project declares, by name" }),
  quiet_hours: OwnQuietHours.optional().meta({ description: "Of the user; absent: none, or a device" }),
});
export type Preferences = z.infer<typeof Preferences>;
