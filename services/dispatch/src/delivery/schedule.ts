import { type Bus, schedule } from "@herald/bus";
import { DueV1 } from "@herald/contracts";

/** Has the bus wake a stored batch or notification. A second one for the same subject replaces the first. */
export type Schedule = (wake: { readonly subject: string; readonly at: Date; readonly data: DueV1 }) => Promise<void>;

export const createSchedule =
  (bus: Bus): Schedule =>
  ({ subject, at, data }) =>
    // The moment is part of the id: the same wake-up set again for later is not a repeat.
    schedule(bus, { subject, at, contract: DueV1, data, id: `${data.id}/due/${at.getTime()}` });
