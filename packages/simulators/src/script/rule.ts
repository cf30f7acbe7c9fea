import { z } from "zod";
import { providers } from "../push-log.ts";
import type { Rule } from "../types.ts";
import { apnsStatuses, reasonsOf } from "./apns-reasons.ts";
import { knownAnswerNames } from "./known-answers.ts";

/** The error codes of RFC 9113, section 7, in the order of their numbers. */
const resetNames = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

/** A longer delay than every client's timeout helps no test and keeps a useless timer. */
const maxDelayMs = 600_000;

/** A token of RFC 9110, in lower case as HTTP/2 requires. */
const headerName = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;

/** The targets of a rule. A rule without `provider` does not apply to Google's token endpoint. */
export const scriptTargets = [...providers, "fcm-token"] as const;
export type ScriptTarget = (typeof scriptTargets)[number];

const shape = z
  .strictObject({
    provider: z.enum(scriptTargets),
    tokenPrefix: z.string().min(1).max(2048),
    share: z.number().min(0).max(1),
    times: z.int().min(1),
    beyond: z.strictObject({ burst: z.int().min(1), everyMs: z.int().min(1) }),
    known: z.enum(knownAnswerNames),
    status: z.int().min(200).max(599),
    reason: z.string().min(1).max(200),
    headers: z
      .record(z.string(), z.string())
      .refine(
        (headers) => Object.keys(headers).every((name) => headerName.test(name)),
        "names are lower-case, without pseudo-headers",
      ),
    body: z.string().max(1_000_000),
    timestamp: z.int().min(0),
    delayMs: z.int().min(0).max(maxDelayMs),
    goaway: z.int().min(1),
    rst: z.union([z.int().min(0).max(0xffff_ffff), z.enum(resetNames)]),
    hang: z.boolean(),
    closeSocket: z.boolean(),
    oneStreamStart: z.boolean(),
  })
  .partial();
type Field = keyof Rule;

const given = (rule: Rule, field: Field) => rule[field] !== undefined && rule[field] !== false;
const anyGiven = (rule: Rule, fields: readonly Field[]) => fields.some((field) => given(rule, field));

/** The fields that decide the answer to one request; the others select requests or apply to the connection. */
const answerFields = ["known", "status", "delayMs", "rst", "hang", "closeSocket"] as const satisfies readonly Field[];

/** Whether the rule decides single requests. The search for a request's rule skips rules that apply only to connections. */
export const decidesRequests = (rule: Rule): boolean => anyGiven(rule, answerFields);

/** Checks across fields: [the field to report, its message, whether the rule is wrong]. */
const together: readonly (readonly [Field, string, (rule: Rule) => boolean])[] = [
  [
    "hang",
    "cannot be together with status, known, rst or closeSocket",
    (r) => given(r, "hang") && anyGiven(r, ["status", "known", "rst", "closeSocket"]),
  ],
  ["rst", "cannot be together with closeSocket", (r) => given(r, "rst") && given(r, "closeSocket")],
  [
    "known",
    "is for webpush, and gives status, headers and body: leave those out, and reason",
    (r) =>
      given(r, "known") &&
      (r.provider !== "webpush" || anyGiven(r, ["status", "reason", "headers", "body", "timestamp"])),
  ],
  ["reason", "needs a status, or goaway", (r) => given(r, "reason") && !anyGiven(r, ["status", "goaway"])],
  ["headers", "needs a status", (r) => given(r, "headers") && !given(r, "status")],
  ["body", "needs a status", (r) => given(r, "body") && !given(r, "status")],
  ["timestamp", "needs status 410", (r) => given(r, "timestamp") && r.status !== 410],
  [
    "goaway",
    "speaks of a whole connection: give no tokenPrefix, share or beyond with it",
    (r) => given(r, "goaway") && anyGiven(r, ["tokenPrefix", "share", "beyond"]),
  ],
  [
    "oneStreamStart",
    "speaks of a whole connection: give no tokenPrefix, share or times with it",
    (r) => given(r, "oneStreamStart") && anyGiven(r, ["tokenPrefix", "share", "times"]),
  ],
];

/** Allows only answers that Apple really sends, so that no test depends on an impossible answer. With a `body`, allows all. */
const unlikeApple = (rule: Rule): { field: Field; message: string } | undefined => {
  if (rule.provider !== "apns" || rule.status === undefined || rule.body !== undefined) return undefined;
  if (!apnsStatuses.includes(rule.status))
    return { field: "status", message: `APNs answers one of ${apnsStatuses.join(", ")}` };
  if (rule.reason === undefined || reasonsOf(rule.status).includes(rule.reason)) return undefined;
  const reasons = reasonsOf(rule.status).join(", ") || "none";
  return { field: "reason", message: `APNs gives these reasons with ${rule.status}: ${reasons}` };
};

/**
 * One rule of a script.
 *
 * Selects requests by `provider` (all when absent; `fcm-token` is Google's token endpoint, whose tokens are the accounts' e-mail
 * addresses), `tokenPrefix` (Web Push: of the endpoint or of its last part), a `share` of them (0..1, drawn from the seed), those
 * `beyond` what a server allows (`burst` at once and one more each `everyMs`), and the first `times`.
 * Answers them, if they are valid, with an answer that a real server was seen to give (`known`), or with `status` and `reason`, `headers`, `timestamp` (ms, APNs 410) or a raw `body`, after `delayMs` (APNs
 * sends a raw body without Apple's own headers, as something in its place would); or
 * with `rst` (an RFC 9113 code or its name), `closeSocket`, or `hang` (never an answer). With a `status`, `rst` and `closeSocket` break
 * the answer in the middle.
 * Connections: `goaway: n` sends GOAWAY after every n streams and names the last of them as the last one processed; `oneStreamStart`
 * allows one stream at a time until the first authenticated request.
 */
const CheckedRule = shape.superRefine((rule, context) => {
  for (const [field, message, wrong] of together) {
    if (wrong(rule)) context.addIssue({ code: "custom", path: [field], message });
  }
  if (!anyGiven(rule, [...answerFields, "goaway", "oneStreamStart"])) {
    context.addIssue({
      code: "custom",
      message: `does nothing: give one of ${answerFields.join(", ")}, goaway, oneStreamStart`,
    });
  }
  const odd = unlikeApple(rule);
  if (odd) context.addIssue({ code: "custom", path: [odd.field], message: odd.message });
});

export const resetCode = (rst: NonNullable<Rule["rst"]>): number =>
  typeof rst === "number" ? rst : resetNames.indexOf(rst);

/** `[rule, …]`, or `{ rules, seed }` to draw another sample for `share`. */
const ScriptDocument = z.preprocess(
  (body) => (Array.isArray(body) ? { rules: body } : body),
  z.strictObject({ rules: z.array(CheckedRule).max(1000), seed: z.int().min(0).optional() }),
);

/** A script with errors. `errors` has one line for each problem: `rules.0.share: …`. */
export class InvalidScript extends Error {
  readonly errors: readonly string[];
  constructor(errors: readonly string[]) {
    super(errors.join("; "));
    this.name = "InvalidScript";
    this.errors = errors;
  }
}

/** One line for each problem. `whole` is the name of the whole value. */
export const schemaProblems = (error: z.ZodError, whole: string): string[] =>
  error.issues.map(({ path, message }) => `${path.join(".") || whole}: ${message}`);

/** @throws InvalidScript with every problem at once */
export function parseScript(body: unknown) {
  const { data, error } = ScriptDocument.safeParse(body);
  if (error) throw new InvalidScript(schemaProblems(error, "script"));
  return data;
}
