import { z } from "zod";
import { NotificationId } from "../../ids.ts";
import { dangerousLinks, linkFields } from "../../links.ts";
import { liquidLimits } from "../../liquid-program.ts";
import { namedBody, type PathProblem, withProblems } from "../../named.ts";
import { pushNameProblem, SendPushType } from "../../push-types.ts";
import { TemplateName } from "../../template-version.ts";
import { Variables } from "../../variables.ts";
import { escalationProblems } from "./escalation.ts";
import { timeProblems } from "./local-time.ts";
import { RecipientsOrUpload } from "./new-recipients.ts";
import { content, Locale, localizationsOf, words } from "./notification-content.ts";
import { boundedContent, NewTargets } from "./notification-limits.ts";
import { payloadProblems } from "./payload-rules.ts";
import { receiptProblems } from "./receipt-fields.ts";
import { rolloutProblems } from "./rollout.ts";

/** Whether a text has Liquid; any other text is its own result. */
export const hasLiquid = (source: string): boolean => source.includes("{{") || source.includes("{%");

const longSource = `must be at most ${liquidLimits.sourceBytes} bytes`;

const refuse = (schema: z.ZodType, text: string, path: string[], context: z.core.$RefinementCtx): void => {
  for (const issue of schema.safeParse(text).error?.issues ?? [])
    context.addIssue({ ...issue, path: [...path, ...issue.path], input: text } as z.core.$ZodRawIssue);
};

/** A text, or Liquid from which it will be rendered: its rules hold for the result, except that a text without Liquid is its own. */
const orLiquid = (schema: z.ZodOptional<z.ZodType<string>>) =>
  z
    .string()
    .superRefine((text, context) => {
      if (!hasLiquid(text)) refuse(schema, text, [], context);
      else if (Buffer.byteLength(text) > liquidLimits.sourceBytes)
        context.addIssue({ code: "custom", message: longSource });
    })
    .optional()
    .meta({ ...z.globalRegistry.get(schema.unwrap()), ...z.globalRegistry.get(schema) });

type Word = keyof typeof words;
const sourceWords: { readonly [Name in Word]: ReturnType<typeof orLiquid> } = {
  title: orLiquid(words.title),
  body: orLiquid(words.body),
  link_to: orLiquid(words.link_to),
  image: orLiquid(words.image),
};

/** The fields of a notification that may be Liquid, before they are rendered. Values of `data` are any text. */
export const sources = { ...sourceWords, localizations: localizationsOf(sourceWords) };

type Sources = { readonly [Name in Word]?: string | undefined };

/** Applies the rules of a text to texts that look like Liquid and are not. */
const refuseLiquid = (
  { localizations = {}, ...own }: Sources & { readonly localizations?: Readonly<Record<string, Sources>> | undefined },
  context: z.core.$RefinementCtx,
): void => {
  const check = (texts: Sources, path: string[]) => {
    for (const name of Object.keys(words) as Word[]) {
      const text = texts[name];
      if (text !== undefined && hasLiquid(text)) refuse(words[name], text, [...path, name], context);
    }
  };
  check(own, []);
  for (const [locale, texts] of Object.entries(localizations)) check(texts, ["localizations", locale]);
};

const dryRun = z
  .boolean()
  .optional()
  .meta({
    description: "True: answers who would get it and each platform's payload; nothing is sent or stored",
    examples: [false],
  });

/** What a send has beside a notification's own fields. */
export const templateFields = {
  template: TemplateName.optional().meta({
    description:
      "The published template whose texts and settings it has. Fields beside it replace the template's, in every language",
  }),
  variables: Variables.optional().meta({
    description:
      "Values for the texts, which are Liquid with `template`, `variables` or `recipients`: `{{ order }}`, and of each device `{{ device.metadata.plan }}`, `{{ device.identifiers.app_version }}` and `{{ user.id }}`. Without these fields, `{{` is text",
  }),
  locale: Locale.optional().meta({
    description:
      "The language of the texts outside `localizations`, for their dates, numbers and plurals: the template's own, or `en`",
    examples: ["en"],
  }),
};

/** Who gets a send: one of these is required. */
export const targetFields = { targets: NewTargets.optional(), recipients: RecipientsOrUpload.optional() };

type Templated = { readonly template?: unknown; readonly variables?: unknown; readonly recipients?: unknown };

/** Whether the texts of a notification are Liquid. */
export const isTemplated = ({ template, variables, recipients }: Templated) =>
  template !== undefined || variables !== undefined || recipients !== undefined;

const nothingShown = "a `title` or a `body` is required unless `silent` is true or `push_type` is set";
type Shown = { title?: unknown; body?: unknown; silent?: unknown; push_type?: unknown };
const isShown = ({ title, body, silent, push_type }: Shown): boolean =>
  title !== undefined || body !== undefined || silent === true || push_type !== undefined;

/** The fields of a push with a push type. It shows nothing by itself: its app or extension does. */
const ofPushTypes: ReadonlySet<string> = new Set([
  ...["app", "collapse_id", "data", "dry_run", "ios", "kind", "labels", "priority", "push_name", "push_type"],
  ...["past", "rollout", "send_at", "targets", "time_zone", "ttl", "variables"],
]);

const ofSends: ReadonlySet<string> = new Set(["locale", "recipients", "template"]);

/** Refuses the fields that a push type does not have, instead of ignoring them. */
const pushTypeProblems = (content: Readonly<Record<string, unknown>>): PathProblem[] => {
  const { push_type: type } = content;
  const name = pushNameProblem(type as SendPushType | undefined, content.push_name as string | undefined);
  const wrongName = name === undefined ? [] : [{ path: ["push_name"], message: name }];
  if (type === undefined) return wrongName;
  const others = Object.keys(content).filter((field) => content[field] !== undefined && !ofPushTypes.has(field));
  const why = (field: string) => (ofSends.has(field) ? "" : ": put what the app needs into `data` or `ios`");
  return [
    ...wrongName,
    ...others.map((field) => ({ path: [field], message: `cannot be combined with \`push_type\`${why(field)}` })),
  ];
};

/** Most sends have no field that is opened, and none with fields of its own. */
const mayHaveLinks = (shown: object): boolean =>
  Object.entries(shown).some(([name, value]) => typeof value === "object" || linkFields.has(name));

const targetsOrRecipients = "either `targets` or `recipients` is required, not both";

type Overridden = Parameters<typeof payloadProblems>[0];

/** Refuses what a provider would refuse of `data` and overrides, which most sends do not have. */
export const refuseUnsendable = withProblems((notification: Overridden) => {
  const { data, ios, android, web } = notification;
  return (data ?? ios ?? android ?? web) === undefined ? [] : payloadProblems(notification);
});

/** Pushes of Live Activities are not sends of their own. */
export const SendPushTypeField = SendPushType.optional().meta(content.push_type.meta() ?? {});
const { activity: _activity, ...own } = content;
const sendable = { ...own, push_type: SendPushTypeField };
const { targets: _targets, ...untargeted } = sendable;

const newNotification = z
  .strictObject({
    ...sendable,
    ...sources,
    ...templateFields,
    ...targetFields,
    dry_run: dryRun,
  })
  .refine(({ targets, recipients }) => (targets === undefined) !== (recipients === undefined), {
    path: ["targets"],
    message: targetsOrRecipients,
  })
  .refine((notification) => notification.template !== undefined || isShown(notification), nothingShown)
  .superRefine((notification, context) => {
    // In one step, because each takes longer than most of these questions.
    const { targets: _, variables: __, recipients: ___, ...shown } = notification;
    const { push_type, push_name, send_at, time_zone, past, rollout, buttons, localizations } = notification;
    const { escalate_after } = notification;
    const problems = [
      ...(mayHaveLinks(shown) ? dangerousLinks(shown) : []),
      ...((push_type ?? push_name) === undefined ? [] : pushTypeProblems(notification)),
      ...((send_at ?? time_zone ?? past) === undefined ? [] : timeProblems(notification)),
      ...(rollout === undefined ? [] : rolloutProblems(notification)),
      ...(escalate_after === undefined ? [] : escalationProblems(notification)),
      ...((buttons ?? localizations) === undefined
        ? []
        : receiptProblems(notification, notification.template === undefined)),
    ];
    for (const problem of problems) context.addIssue({ code: "custom", ...problem });
    refuseUnsendable(notification, context);
    if (isTemplated(notification)) return;
    refuseLiquid(notification, context);
    if (notification.locale !== undefined)
      context.addIssue({ code: "custom", path: ["locale"], message: "needs `template`, `variables` or `recipients`" });
  });

/** A notification to send. */
export const NewNotification = z.preprocess(boundedContent, newNotification).meta({ id: "NewNotification" });

/** The content of a notification after its texts were rendered, without its targets. */
export const RenderedContent = z.preprocess(
  boundedContent,
  z
    .strictObject(untargeted)
    .refine(isShown, nothingShown)
    .superRefine(withProblems(pushTypeProblems))
    .superRefine(withProblems(dangerousLinks))
    .superRefine(withProblems((notification) => receiptProblems(notification)))
    .superRefine(withProblems(escalationProblems))
    .superRefine(refuseUnsendable),
);

const shortExample = {
  title: "Your order has shipped",
  body: "It arrives tomorrow before noon.",
  targets: ["topic:news"],
  link_to: "/orders/42",
};

/** Body of `POST /notifications`. */
export const SendNotification = namedBody(
  "SendNotification",
  { notification: NewNotification },
  { examples: [{ notification: shortExample }] },
);
export type SendNotification = z.infer<typeof SendNotification>;

/** The limits of `POST /notifications/batch`. */
export const batchSendLimits = { notifications: 500, bodyBytes: 4 * 1_048_576 } as const;

/** Body of `POST /notifications/batch`. Each entry is a {@link NewNotification}, validated separately, so the schema leaves it open. */
export const SendNotifications = namedBody(
  "SendNotifications",
  {
    notifications: z
      .array(z.unknown().meta({ override: { $ref: "#/components/schemas/NewNotification" } }))
      .min(1, "at least one notification is required")
      .max(batchSendLimits.notifications, `at most ${batchSendLimits.notifications} notifications are accepted`),
  },
  { examples: [{ notifications: [shortExample, { title: "Your invoice", targets: ["user:u_8412"] }] }] },
);

/** The result for one notification of a batch. */
export const SentNotification = z
  .union([
    z.object({ id: NotificationId }),
    z.object({ errors: z.array(z.string()).min(1).meta({ description: "Why this one was not accepted" }) }),
  ])
  .meta({ id: "SentNotification" });
export type SentNotification = z.infer<typeof SentNotification>;
