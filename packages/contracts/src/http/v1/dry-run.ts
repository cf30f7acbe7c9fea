import { z } from "zod";
import { named } from "../../named.ts";
import { PlannedWave } from "./local-time.ts";
import { PlannedRollout } from "./rollout.ts";

const count = z.number().int().min(0);

const eachSample = <Sample extends z.ZodType>(sample: Sample) => {
  const each = sample.optional();
  return z.object({ ios: each, android: each, web: each, drawn: each });
};

/** Devices that would get a notification only later. */
export const PlannedDelay = named(
  "PlannedDelay",
  {
    until: z.iso.datetime().meta({ description: "When they would get it" }),
    reason: z.string().meta({ description: "A delivery reason (/docs/errors#reasons)" }),
    devices: count,
  },
  { examples: [{ until: "2030-01-31T07:00:00.000Z", reason: "quiet-hours", devices: 12 }] },
);

/** The answer to `dry_run`: the number of devices and each platform's payload; nothing is sent or stored. */
export const DryRun = named(
  "DryRun",
  {
    dry_run: z.literal(true),
    devices: z.object({ total: count, ios: count, android: count, web: count }),
    unmatched: z.array(z.string()),
    schedule: z.array(PlannedWave).optional().meta({
      description: "The waves in which it would be sent; absent unless it would be sent in waves",
    }),
    rollout: PlannedRollout.optional().meta({ description: "Absent unless it has a rollout" }),
    skips: z
      .record(z.string(), count)
      .optional()
      .meta({
        description:
          "Of these devices, those that would get nothing, by reason, as they are now; absent unless the project has rules for such a send or it would be sent in waves",
        examples: [{ muted: 4 }],
      }),
    delayed: z.array(PlannedDelay).optional().meta({
      description: "Of these devices, those that quiet hours would delay at the time of the send; absent as `skips`",
    }),
    evaluated_later: z
      .array(z.enum(["frequency-cap"]))
      .optional()
      .meta({
        description: "Rules that apply to the send and are evaluated only when it is sent; absent as `skips`",
        examples: [["frequency-cap"]],
      }),
    rendered: eachSample(z.unknown()).meta({
      description:
        "One payload for each platform that has devices, with placeholders for device and open token; for a device with all capabilities. `drawn`: the message for Android apps that draw it themselves, present with receipts or buttons",
    }),
    sizes: eachSample(z.object({ bytes: count, max: count })).meta({
      description: "The size of each of these, for a device without a localization, and what its provider takes",
    }),
  },
  {
    examples: [
      {
        dry_run: true,
        devices: { total: 120, ios: 80, android: 40, web: 0 },
        unmatched: ["topic:olds"],
        rendered: {
          ios: { aps: { alert: { title: "Your order has shipped" } }, notification_id: "ntf_…", token: "…" },
        },
        sizes: { ios: { bytes: 391, max: 4_096 } },
      },
    ],
  },
);
export type DryRun = z.infer<typeof DryRun>;
