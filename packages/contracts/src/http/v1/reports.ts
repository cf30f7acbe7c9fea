import { z } from "zod";
import { ProjectId } from "../../ids.ts";
import { namedBody } from "../../named.ts";
import { ButtonId } from "./receipt-fields.ts";

/** The open token is in the payload of the push. */
const report = {
  project_id: ProjectId,
  token: z.string().min(1).max(512),
  ago: z
    .number()
    .int()
    .min(0)
    .optional()
    .meta({
      description:
        "Seconds since it happened, for a report that comes later; absent: now. At most back to the time when the push was sent",
      examples: [90],
    }),
};

/** Body of `PUT /notifications/{id}/received` and `…/dismissed`. */
export const ReportNotification = namedBody("ReportNotification", report);

/** Body of `PUT /notifications/{id}/open`. */
export const OpenNotification = namedBody("OpenNotification", {
  ...report,
  button: ButtonId.optional().meta({
    description: "The id of the button that was pressed. An id that is not one of the notification's counts as none",
  }),
});
