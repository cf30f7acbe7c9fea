import { z } from "zod";
import { isObject } from "../../plain-batch.ts";
import { recipientLimits } from "../../recipients.ts";
import { parseTarget, targetClauses } from "../../targets.ts";

/**
 * The limits of `POST /notifications`. They do not apply to data from the bus and the ledger: notifications that an older gateway accepted
 * are still sent and shown.
 */
export const notificationLimits = {
  /** A notification without its targets, as JSON: dispatch stores it, and holds it in memory during the send. */
  contentBytes: 65_536,
  /** More than the languages of any app store. Each localization is rendered and measured for every platform. */
  localizations: 100,
  /** Over all targets. Each clause is evaluated for every device that an index does not exclude. */
  clauses: 200,
  targets: 1_000,
  targetLength: 4_096,
} as const;

const { clauses: maxClauses, contentBytes: maxBytes, targetLength } = notificationLimits;

const tooManyTargets = `at most ${notificationLimits.targets} targets are accepted`;

const targetText = z
  .string()
  .min(1, "may not be empty")
  .max(targetLength, `must be at most ${targetLength} characters`);

/** `min`: a notification with recipients has no target. */
export const targetList = <Entry extends z.ZodType>(entry: Entry, { min = 1 } = {}) =>
  z
    .array(entry)
    .min(min, "at least one target is required")
    .max(notificationLimits.targets, tooManyTargets)
    .meta({
      description:
        "Who gets it: each entry names a set of devices, and the notification goes once to every active device of any of them. `topic:news`, `user:u_8412`, `device:dev_…`, `token:<push token>`, `metadata:plan=pro`, `identifiers:current_locale=de`, `condition:<expression>` or `all`",
      examples: [["topic:news"]],
    });

/** A target as an earlier Herald accepted it, without a limit of clauses. */
export const TargetEntry = targetText.superRefine((source, context) => {
  const parsed = parseTarget(source);
  if ("problem" in parsed) context.addIssue({ code: "custom", message: parsed.problem });
});

const tooManyClauses = `its clauses bring those of all targets above ${maxClauses}, and at most ${maxClauses} are accepted; a clause is a topic or a comparison with one value in a condition, or a value longer than an index holds. Topics that are joined by || may be targets of their own`;

/** The targets of a new notification. Conditions are parsed up to the first clause above the limit, so refusing costs no more. */
export const NewTargets = targetList(targetText).superRefine((sources, context) => {
  let clauses = 0;
  for (const [at, source] of sources.entries()) {
    if (source === "" || source.length > targetLength) continue;
    if (clauses > maxClauses && source.startsWith("condition:")) continue;
    const parsed = parseTarget(source);
    if ("problem" in parsed) {
      context.addIssue({ code: "custom", path: [at], message: parsed.problem });
      continue;
    }
    const more = targetClauses(parsed.target);
    if (clauses <= maxClauses && clauses + more > maxClauses)
      context.addIssue({ code: "custom", path: [at], message: tooManyClauses });
    clauses += more;
  }
});

/** A single target. */
export const NewTarget = targetText.superRefine((source, context) => {
  if (source === "" || source.length > targetLength) return;
  const parsed = parseTarget(source);
  if ("problem" in parsed) context.addIssue({ code: "custom", message: parsed.problem });
  else if (targetClauses(parsed.target) > maxClauses)
    context.addIssue({ code: "custom", message: `has more than ${maxClauses} clauses` });
});

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

/** Not of the content that is stored. */
const unstored: ReadonlySet<string> = new Set(["targets", "dry_run", "recipients"]);

/** As many bytes as JSON may have for a character of a text, and for a number. */
const [characterBytes, numberBytes] = [6, 25];

/** At least the bytes of a value's JSON without these fields, in a fraction of the time that it takes to make it. */
const atMostBytes = (value: unknown, without?: ReadonlySet<string>): number => {
  if (typeof value === "string") return value.length * characterBytes + 2;
  if (!isObject(value) && !Array.isArray(value)) return numberBytes;
  let bytes = 2;
  for (const name in value)
    if (!without?.has(name))
      bytes += name.length * characterBytes + 4 + atMostBytes((value as Record<string, unknown>)[name]);
  return bytes;
};

const maxFieldLength = 32;

/**
 * Refuses a notification that is too large before each field is validated: 60,000 fields take seconds. Reports only the field that is too
 * large.
 */
export const boundedContent = (notification: unknown, context: z.core.$RefinementCtx): unknown => {
  if (!isObject(notification)) return notification;
  const { targets, recipients, localizations: texts } = notification;
  const refuse = (field: string, message: string) => {
    // An unknown field name may be most of the body.
    const path = field.length <= maxFieldLength ? [field] : [];
    context.addIssue({ code: "custom", path, message, input: notification });
    return z.NEVER;
  };
  if (Array.isArray(recipients) && recipients.length > recipientLimits.inline)
    return refuse("recipients", `at most ${recipientLimits.inline} are accepted in a request`);
  if (Array.isArray(targets) && targets.length > notificationLimits.targets) return refuse("targets", tooManyTargets);
  const localizations = isObject(texts) ? Object.keys(texts).length : 0;
  if (localizations > notificationLimits.localizations)
    return refuse("localizations", `at most ${notificationLimits.localizations} are accepted, not ${localizations}`);
  if (atMostBytes(notification, unstored) <= maxBytes) return notification;
  const stored = Object.entries(notification).filter(([field]) => !unstored.has(field));
  const bytes = bytesOf(Object.fromEntries(stored));
  if (bytes <= maxBytes) return notification;
  const fields = stored.map(([field, value]) => ({ field, bytes: bytesOf(field) + bytesOf(value) }));
  const heaviest = fields.reduce((one, other) => (other.bytes > one.bytes ? other : one));
  return refuse(
    heaviest.field,
    `has ${heaviest.bytes} of the notification's ${bytes} bytes of JSON without its targets, and at most ${maxBytes} are accepted`,
  );
};
