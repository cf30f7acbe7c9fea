import { z } from "zod";

const Clock = z
  .string()
  .regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, "must be a time of the day from `00:00` to `23:59`, such as `22:00`");

const hours = {
  from: Clock.meta({ description: "Of the device's time zone", examples: ["22:00"] }),
  to: Clock.meta({ description: "The first minute after them; before `from`: on the next day", examples: ["07:00"] }),
};
const differ = { message: "`from` and `to` must differ", path: ["to"] };

/** Quiet hours that a project or a kind sets. */
export const QuietHours = z
  .strictObject({
    ...hours,
    mode: z.enum(["delay", "skip"]).meta({ description: "`delay`: devices get the notification when they end" }),
  })
  .refine(({ from, to }) => from !== to, differ)
  .meta({ id: "QuietHours", examples: [{ from: "22:00", to: "07:00", mode: "delay" }] });
export type QuietHours = z.infer<typeof QuietHours>;

/** Quiet hours that a user sets: devices get the notification when they end. */
export const OwnQuietHours = z
  .strictObject(hours)
  .refine(({ from, to }) => from !== to, differ)
  .meta({ id: "OwnQuietHours", examples: [{ from: "22:00", to: "07:00" }] });
export type OwnQuietHours = z.infer<typeof OwnQuietHours>;
