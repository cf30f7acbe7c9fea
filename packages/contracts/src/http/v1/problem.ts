import { z } from "zod";
import { named } from "../../named.ts";

/** One problem of a request. */
export const FieldProblem = named("FieldProblem", {
  pointer: z.string().optional().meta({
    description:
      "Into the body, an RFC 6901 JSON pointer such as `#/notification/title`; else the name of the parameter or header. Absent where the whole request is meant",
  }),
  detail: z.string().meta({ description: "What is wrong, and what would be accepted" }),
  code: z.string().meta({
    description:
      "Stable: `required`, `unknown-field`, `invalid-type`, `invalid-value`, `invalid-format`, `too-short`, `too-long`, `too-small`, `too-large`, `too-few`, `too-many`, `repeated`, `more-problems`, or the slug of `type`. New codes may come",
  }),
});

/** The body of every error response: `application/problem+json` (RFC 9457) with all problems at once. */
export const Problem = named("Problem", {
  errors: z.array(z.string()).min(1).meta({ description: "Each names the field and what would be accepted" }),
  problems: z.array(FieldProblem).min(1).meta({ description: "The same, one by one as `errors`, for programs" }),
  type: z.string().meta({ description: "Where the kind of error is described" }),
  title: z.string(),
  status: z.number().int(),
  detail: z.string().meta({ description: "The first error, and how many more there are" }),
  instance: z.string().meta({ description: "The request id" }),
});
export type Problem = z.infer<typeof Problem>;
