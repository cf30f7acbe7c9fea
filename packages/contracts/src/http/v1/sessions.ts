import { z } from "zod";
import { OperatorId } from "../../ids.ts";
import { OperatorRole } from "./operators.ts";

/** How long a session lasts: a working day. */
export const sessionMs = 8 * 3_600_000;
/** How long a sign-in code can be exchanged: enough to click a link. */
export const signInCodeMs = 600_000;

/** The cookie of a session, and the headers of requests that operators make. */
export const sessionCookie = "herald_session";
export const operatorHeaders = { csrf: "Herald-Csrf", project: "Herald-Project" } as const;

/** An operator, or `root`: the holder of HERALD_ADMIN_TOKEN. */
export const OperatorReference = z
  .union([OperatorId, z.literal("root")])
  .meta({ description: "`root`: the holder of HERALD_ADMIN_TOKEN", examples: ["opr_06bq4ghm31tz5d2ns8y7k9w0ac"] });
export type OperatorReference = z.infer<typeof OperatorReference>;

export const SignedInOperator = z
  .object({ id: OperatorReference, name: z.string().meta({ examples: ["Maria Lopez"] }), role: OperatorRole })
  .meta({ id: "SignedInOperator" });
export type SignedInOperator = z.infer<typeof SignedInOperator>;

const CsrfToken = z.string().meta({
  description: "Send it as `Herald-Csrf` with every change that uses the session cookie",
  examples: ["mJ2xWl8m1VnLw9mZl1kq0t7Y2b3c4d5e6f7g8h9i0jk"],
});

/** A new session. Its secret is in the cookie alone. */
export const Session = z
  .object({ operator: SignedInOperator, csrf_token: CsrfToken, expires_at: z.iso.datetime() })
  .meta({ id: "Session" });
export type Session = z.infer<typeof Session>;

/** Who the caller is. Without a session, as with an operator token, there is no CSRF token and no end. */
export const CurrentSession = Session.partial({ csrf_token: true, expires_at: true }).meta({ id: "CurrentSession" });
export type CurrentSession = z.infer<typeof CurrentSession>;

/** Body of `POST /admin/v1/sessions`: nothing beside an operator's token, or a sign-in code without one. */
export const CreateSession = z
  .strictObject({
    code: z
      .string()
      .max(100, "must be a sign-in code, hoc_…")
      .optional()
      .meta({ description: "A sign-in code, `hoc_…`, when no Authorization is sent", examples: ["hoc_…"] }),
  })
  .meta({ id: "CreateSession" });
export type CreateSession = z.infer<typeof CreateSession>;

/** A one-time code that signs in as the operator who made it. */
export const SignInCode = z
  .object({ code: z.string().meta({ examples: ["hoc_…"] }), expires_at: z.iso.datetime() })
  .meta({ id: "SignInCode" });
export type SignInCode = z.infer<typeof SignInCode>;
