import { z } from "zod";
import { type ErrorCode, errors } from "./errors.ts";

/** Why a request failed. */
export const ReplyError = z.object({
  code: z.enum(Object.keys(errors) as [ErrorCode, ...ErrorCode[]]),
  messages: z.array(z.string()).min(1),
  retryAfterSeconds: z.number().int().min(0).optional(),
});
export type ReplyError = z.infer<typeof ReplyError>;

/** The reply to a request: its answer, or an error. */
export type Reply = { readonly answer: unknown } | { readonly error: ReplyError };
