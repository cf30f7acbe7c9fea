import type { NewNotification } from "@herald/client";
import type { FieldSpec } from "../../parts/field-values.ts";
import { messageFields } from "../../parts/message-fields.ts";
import { buttonValues } from "./button-values.ts";

const urgencies: Readonly<Record<string, readonly [label: string, means: string]>> = {
  passive: ["Passive", "No sound, and the screen stays dark."],
  active: ["Active", "As most notifications."],
  "time-sensitive": ["Time-sensitive", "Breaks through a Focus. iOS: needs Apple's entitlement."],
  critical: ["Critical", "Sounds even if muted. iOS: needs Apple's entitlement."],
};

const presentation = { under: "Presentation", half: true } as const;
const reactions = { under: "Receipts and buttons" } as const;

/** What a notification shows, and how: the fields of the form by their names in the API. */
export const contentFields = {
  ...messageFields,
  urgency: {
    ...presentation,
    label: "Urgency",
    hint: (urgency: string) => urgencies[urgency]?.[1] ?? "How much it may interrupt.",
    placeholder: "Not set",
    as: "select",
    choices: Object.entries(urgencies).map(([value, [label]]) => ({ value, label })),
    props: { clearable: true, clearButtonProps: { "aria-label": "Remove the urgency" } },
  },
  relevance: {
    ...presentation,
    label: "Relevance",
    hint: "iOS: its order in the summary, from 0 to 1.",
    placeholder: "0.5",
    as: "decimal",
  },
  thread: {
    ...presentation,
    label: "Thread",
    hint: "Notifications of one thread are grouped.",
    placeholder: "order-42",
  },
  android_channel: {
    ...presentation,
    label: "Android channel",
    hint: "The id of a channel that the app has created.",
    placeholder: "orders",
  },
  icon: { ...presentation, label: "Icon", hint: "Browsers show it beside the text.", placeholder: "https://…" },
  receipts: {
    ...reactions,
    label: "Receipts",
    hint: "The share of the devices that report the arrival, in percent. Empty: as in the project's settings.",
    placeholder: "10",
    as: "percent",
    props: { maw: 280 },
  },
  escalate_after: {
    ...reactions,
    label: "Follow up after",
    hint: "Seconds, 60 to 604,800: then an event names the users who have not opened it. Only for users, devices and tokens.",
    placeholder: "3600",
    as: "decimal",
    props: { maw: 280 },
  },
  buttons: { ...reactions, label: "Buttons", as: buttonValues },
} as const satisfies { readonly [Name in keyof NewNotification]?: FieldSpec };
