import { z } from "zod";

/** Every error answer, as `application/problem+json` (RFC 9457) with all problems at once in `errors`. */
export const Problem = z
  .object({
    errors: z.array(z.string()).min(1).meta({ description: "Each names the field and what would be accepted" }),
    type: z.string().meta({ description: "Where the kind of error is described" }),
    title: z.string(),
    status: z.number().int(),
    instance: z.string().meta({ description: "The request id" }),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof Problem>;
