import { z } from "zod";
import { changedFields, namedBody } from "../../named.ts";
import { Ttl, timeFields } from "./local-time.ts";
import { PerMinute } from "./rollout.ts";

/** Body of `PATCH /notifications/{id}`; null: removes it. */
export const ChangeNotification = namedBody("ChangeNotification", {
  notification: changedFields(
    {
      send_at: timeFields.send_at,
      time_zone: timeFields.time_zone.nullable(),
      past: timeFields.past.nullable(),
      ttl: Ttl.nullable().optional(),
      rollout: z
        .strictObject({ per_minute: PerMinute })
        .optional()
        .meta({ description: "A lower speed, also while it is sent. In a request of its own" }),
    },
    { examples: [{ send_at: "2030-01-31T10:00:00+01:00" }] },
  ).refine(({ rollout, ...others }) => rollout === undefined || Object.keys(others).length === 0, {
    path: ["rollout"],
    message: "is changed in a request of its own",
  }),
});
