import { z } from "zod";

/**
 * What an app's kit can do. `draws`: shows a notification that Herald sends as data (Android); `receipts`: reports that a push arrived;
 * `buttons`: shows a notification's buttons; `updates`: changes what it shows.
 */
export const knownCapabilities = ["buttons", "draws", "receipts", "updates"] as const;
export type Capability = (typeof knownCapabilities)[number];

/** Known capabilities, sorted, separated by spaces: a device's stored form. */
export type Capabilities = string;

const maxCapabilities = 16;

export const CapabilityList = z
  .array(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, "must be a slug such as `receipts`"))
  .max(maxCapabilities, `at most ${maxCapabilities} are accepted`)
  .meta({
    description:
      "What the app's kit can do: `receipts` (reports that a push arrived), `buttons` (shows buttons), `draws` (Android: shows notifications that Herald sends as data), `updates`. Others are ignored. `PUT /identification` without it removes them, because an older version of the app may not have them",
    examples: [["receipts", "buttons"]],
  });

/** The known capabilities of a list; undefined: none. */
export const capabilitiesFrom = (list: readonly string[]): Capabilities | undefined =>
  knownCapabilities.filter((known) => list.includes(known)).join(" ") || undefined;

export const capabilityList = (capabilities: Capabilities): string[] => capabilities.split(" ");

export const hasCapability = (capabilities: Capabilities | undefined, wanted: Capability): boolean =>
  capabilities !== undefined && ` ${capabilities} `.includes(` ${wanted} `);
