import { z } from "zod";
import { named, namedBody } from "../../named.ts";
import { Author } from "./templates.ts";

/** Why somebody paused: for people, so it has no line breaks. */
export const ReasonText = z
  .string()
  .min(1, "may not be empty")
  .max(200, "must be at most 200 characters")
  .refine((text) => !/\p{Cc}/u.test(text), "may not contain control characters")
  .meta({ description: "Why, for people", examples: ["the link leads to yesterday's sale"] });

const pause = {
  at: z.iso.datetime(),
  by: Author,
  reason: ReasonText.optional(),
};

/** A pause of one notification. */
export const Pause = named(
  "Pause",
  {
    ...pause,
    by: Author.optional().meta({ description: "Absent: its rollout stopped by itself" }),
    reason: z.string().optional(),
  },
  { description: "Since when nothing is sent, and who paused it" },
);
export type Pause = z.infer<typeof Pause>;

const until = z.iso
  .datetime()
  .optional()
  .meta({ description: "When it resumes by itself; absent: when somebody resumes it" });

/** A pause of the sends of a project, as it is stored. */
export const StoredPause = z.object({ ...Pause.shape, by: Author, until });
export type StoredPause = z.infer<typeof StoredPause>;

/** A pause of all sends of a project. */
export const ProjectPause = named(
  "ProjectPause",
  {
    ...StoredPause.shape,
    of: z.enum(["project", "installation"]).meta({ description: "`installation`: all projects are paused" }),
  },
  { description: "Since when nothing is sent, and who paused it" },
);
export type ProjectPause = z.infer<typeof ProjectPause>;

/** Body of `POST /notifications/{id}/pause`. */
export const PauseNotification = namedBody("PauseNotification", { reason: ReasonText.optional() });

/** Body of `POST /admin/v1/projects/{id}/pause` and `POST /admin/v1/pause`. */
export const PauseSends = namedBody("PauseSends", {
  reason: ReasonText.optional(),
  until: z.iso
    .datetime({ offset: true, error: "must be an RFC 3339 time with offset, such as 2030-01-31T10:00:00+01:00" })
    .optional()
    .meta({
      description: "When it resumes by itself; absent: when somebody resumes it",
      examples: ["2030-01-31T10:00:00+01:00"],
    }),
});

/** The installation: what holds for all of its projects. */
export const Installation = named("Installation", {
  paused: ProjectPause.optional().meta({ description: "All sends are paused; absent: they are not" }),
});
export type Installation = z.infer<typeof Installation>;
