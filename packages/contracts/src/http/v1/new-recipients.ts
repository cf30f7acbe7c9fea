import { z } from "zod";
import { namedBody } from "../../named.ts";
import { RecipientKind, recipientKinds, recipientLimits } from "../../recipients.ts";
import { parseTarget } from "../../targets.ts";
import { Variables } from "../../variables.ts";
import { notificationLimits } from "./notification-limits.ts";

const { targetLength } = notificationLimits;
const targetRule = "must be `user:<id>`, `device:<id>` or `token:<push token>`";

/** The kind of a recipient's target and what follows it, or why it is none. */
export const parseRecipient = (
  source: string,
): { readonly kind: RecipientKind; readonly key: string } | { readonly problem: string } => {
  const parsed = parseTarget(source);
  if ("problem" in parsed) return parsed;
  const { target } = parsed;
  switch (target.kind) {
    case "user":
    case "device":
      return { kind: target.kind, key: target.id };
    case "token":
      return { kind: "token", key: target.token };
    default:
      return { problem: targetRule };
  }
};

/** One recipient and its values. */
const NewRecipient = namedBody(
  "NewRecipient",
  {
    target: z
      .string()
      .min(1, targetRule)
      .max(targetLength, `must be at most ${targetLength} characters`)
      .meta({ description: "A user, a device or a push token", examples: ["user:u_8412"] }),
    variables: Variables.optional().meta({
      description: "Values of this recipient alone",
      examples: [{ order: "42" }],
    }),
  },
  { examples: [{ target: "user:u_8412", variables: { order: "42" } }] },
);
export type NewRecipient = z.infer<typeof NewRecipient>;

/** A file of recipients that follows. */
const UploadedRecipients = namedBody(
  "UploadedRecipients",
  { upload: RecipientKind },
  { examples: [{ upload: "user" }] },
);

/** Recipients in a request: all of the kind of the first. */
export const NewRecipients = z
  .array(NewRecipient)
  .min(1, "at least one recipient is required")
  .max(recipientLimits.inline, `at most ${recipientLimits.inline} are accepted in a request`)
  .superRefine((recipients, context) => {
    let kind: RecipientKind | undefined;
    for (const [at, { target }] of recipients.entries()) {
      const parsed = parseRecipient(target);
      const refuse = (message: string) => context.addIssue({ code: "custom", path: [at, "target"], message });
      if ("problem" in parsed) refuse(parsed.problem);
      else if (kind === undefined) kind = parsed.kind;
      else if (parsed.kind !== kind)
        refuse(`must be \`${kind}:\` as the first one; a notification's recipients are all of one kind`);
    }
  })
  .meta({
    description: `Instead of \`targets\`: up to ${recipientLimits.inline} recipients, all ${recipientKinds
      .map((kind) => `\`${kind}:\``)
      .join(", ")
      .replace(
        /, (?=[^,]*$)/,
        " or all ",
      )}, each with values of its own for the texts. Of duplicate targets, the first wins`,
    examples: [[{ target: "user:u_8412", variables: { order: "42" } }]],
  });

/** The recipients of a send: in its request, or in a file that is uploaded after it. */
export const RecipientsOrUpload = z.union([NewRecipients, UploadedRecipients]).meta({
  description:
    "Instead of `targets`: recipients with values of their own. Up to 2,000 in the request, or `{ upload: <kind> }`, and then a file with `PUT /notifications/{id}/recipients`",
  examples: [[{ target: "user:u_8412", variables: { order: "42" } }]],
});
