import { z } from "zod";
import { type ErrorCode, errors } from "./errors.ts";

/** The error side of a reply to a question. */
export const ReplyError = z.object({
  code: z.enum(Object.keys(errors) as [ErrorCode, ...ErrorCode[]]),
  messages: z.array(z.string()).min(1),
  retryAfterSeconds: z.number().int().min(0).optional(),
});
export type ReplyError = z.infer<typeof ReplyError>;

/** What travels back for a question: its answer, or why there is none. */
export type Reply = { readonly answer: unknown } | { readonly error: ReplyError };
