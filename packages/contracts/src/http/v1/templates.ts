import { z } from "zod";
import { DeviceId, OperatorId, TokenId } from "../../ids.ts";
import { dangerousLinks } from "../../links.ts";
import { named, namedBody, withProblems } from "../../named.ts";
import { TemplateName } from "../../template-version.ts";
import { DeclaredVariables, Variables } from "../../variables.ts";
import { content, Locale } from "./notification-content.ts";
import { receiptProblems } from "./receipt-fields.ts";
import { refuseUnsendable, sources } from "./send-notification.ts";

/** `versions`: the last ones, which can be read. */
export const templateLimits = { bytes: 32_768, perProject: 200, versions: 100 } as const;

const {
  targets: _targets,
  send_at: _sendAt,
  template: _template,
  recipients: _recipients,
  push_type: _type,
  push_name: _name,
  activity: _activity,
  rollout: _rollout,
  escalate_after: _after,
  ...settings
} = content;

const tooLarge = `must be at most ${templateLimits.bytes} bytes of JSON`;

const bounded = (template: unknown, context: z.core.$RefinementCtx): unknown => {
  if (Buffer.byteLength(JSON.stringify(template) ?? "") <= templateLimits.bytes) return template;
  context.addIssue({ code: "custom", message: tooLarge, input: template });
  return z.NEVER;
};

/** What a notification from the template has: any of its fields but whom it is for, when it is sent, and a push type, which shows nothing. */
export const TemplateContent = z
  .preprocess(
    bounded,
    z
      .strictObject({
        ...settings,
        ...sources,
        variables: DeclaredVariables.optional(),
        locale: Locale.optional().meta({
          description:
            "The language of the texts outside `localizations`, for their dates, numbers and plurals; absent: `en`",
          examples: ["en"],
        }),
      })
      .superRefine(withProblems(dangerousLinks))
      .superRefine(withProblems((template) => receiptProblems(template)))
      .superRefine(refuseUnsendable),
  )
  .meta({
    id: "TemplateContent",
    description:
      "The fields of a notification without `targets` and `send_at`. `title`, `body`, `link_to`, `image` and the values of `data` are Liquid: they show the declared variables, `device.metadata.<path>`, `device.identifiers.<path>` and `user.id`",
    examples: [
      {
        title: "Order {{ order }} has shipped",
        body: "Hi {{ name }}, it arrives {{ at | date: 'long' }}.",
        link_to: "/orders/{{ order }}",
        variables: {
          order: { type: "string" },
          name: { type: "string", fallback: "friend" },
          at: { type: "datetime" },
        },
      },
    ],
  });
export type TemplateContent = z.infer<typeof TemplateContent>;

/** Body of `PUT /templates/{name}`. */
export const PutTemplate = namedBody("PutTemplate", { template: TemplateContent });

/** Who changed a template: a project token or an operator. */
export const Author = named("Author", {
  id: z.union([TokenId, OperatorId, z.literal("root")]),
  name: z
    .string()
    .optional()
    .meta({ description: "Of an operator", examples: ["Maria Lopez"] }),
});
export type Author = z.infer<typeof Author>;

const version = z.number().int().min(1);

export const TemplateSummary = named("TemplateSummary", {
  name: TemplateName,
  published: version.optional().meta({ description: "The version that sends use; absent: none yet" }),
  published_at: z.iso.datetime().optional(),
  changed: z.boolean().meta({ description: "The draft differs from the published version" }),
  updated_at: z.iso.datetime().meta({ description: "When the draft was last stored" }),
});
export type TemplateSummary = z.infer<typeof TemplateSummary>;

/** `draft`, or a published version. */
const Which = z.union([z.literal("draft"), version]);

export const Template = TemplateSummary.extend({
  version: Which.meta({ description: "The version of `content`", examples: [3] }),
  author: Author.meta({ description: "Who wrote the draft, or published the version" }),
  content: TemplateContent,
}).meta({ id: "Template" });
export type Template = z.infer<typeof Template>;

/** A published version, without its content. */
export const PublishedVersion = named("PublishedVersion", {
  version,
  author: Author,
  published_at: z.iso.datetime(),
});
export type PublishedVersion = z.infer<typeof PublishedVersion>;

/** The query of `GET /templates/{name}`. */
export const TemplateQuery = z.strictObject({
  version: z
    .string()
    .regex(/^([1-9][0-9]{0,8}|draft)$/, "must be `draft` or the number of a version")
    .optional()
    .meta({ description: "A published version, or `draft`; absent: the draft", examples: ["3"] }),
});

/** Body of `POST /templates/{name}/preview`. */
export const PreviewTemplate = namedBody("PreviewTemplate", {
  preview: z.strictObject({
    version: Which.optional().meta({ description: "Absent: the draft" }),
    content: TemplateContent.optional().meta({ description: "Shown instead of a stored version, and not stored" }),
    variables: Variables.optional(),
    device: DeviceId.optional().meta({
      description:
        "A device whose `device.metadata`, `device.identifiers`, `user.id` and language it shows. Absent: names stand for the values",
    }),
    locale: Locale.optional().meta({ description: "Of the device: selects the localization", examples: ["de"] }),
  }),
});

const PlatformPreview = named("PlatformPreview", {
  payload: z
    .record(z.string(), z.unknown())
    .meta({ examples: [{ aps: { alert: { title: "Order 42 has shipped" } } }] }),
  bytes: z.number().int().min(0),
  problems: z.array(z.string()).meta({ description: "Why the provider would refuse it; empty: it would not" }),
});

export const TemplatePreview = named("TemplatePreview", {
  ios: PlatformPreview,
  android: PlatformPreview,
  web: PlatformPreview,
  drawn: PlatformPreview.optional().meta({
    description: "For Android apps that draw the notification themselves; present with receipts or buttons",
  }),
});
export type TemplatePreview = z.infer<typeof TemplatePreview>;
