import type { NewNotification, Notification, RecipientTarget, Target } from "@herald/client";
import { enteredOf, sentOf } from "../../parts/field-values.ts";
import { isJsonObject, type Json, objectOf } from "../../parts/json.ts";
import { typedValue } from "../../parts/variable.ts";
import type { FileRecipient } from "../recipients-file/read-file.ts";
import { contentFields } from "./content-fields.ts";
import { type Draft, emptyDraft } from "./draft.ts";
import { enteredRollout, rolloutOf } from "./rollout-fields.ts";

/** The fields of `more`; undefined when it is not a JSON object. */
export const moreOf = ({ more }: Pick<Draft, "more">): Json | undefined => (more.trim() === "" ? {} : objectOf(more));

/** What to write instead of `more`; undefined: it can be sent. */
export const moreProblem = (draft: Pick<Draft, "more">): string | undefined => {
  const more = moreOf(draft);
  if (more === undefined) return 'Write a JSON object, such as { "priority": "normal" }';
  if (more.dry_run !== undefined) return "Leave out dry_run: this page counts the devices before it sends.";
  if (isJsonObject(more.recipients)) return "Leave out recipients, and choose “A file” under “Who gets it”.";
  return undefined;
};

const typedValues = ({ variables }: Draft) =>
  Object.fromEntries(
    variables.flatMap(({ name, type, text }) => (text === "" ? [] : [[name, typedValue(type, text)]])),
  );

/** The time is one choice: with one of its fields from the form, none of the others is left from `more`. */
const timeOf = ({ sendAt, past, from }: Draft, { send_at, time_zone, past: morePast }: Json) => {
  if (sendAt === "" || from === "file") return { send_at, time_zone, past: morePast };
  return past === ""
    ? { send_at: new Date(sendAt).toISOString() }
    : { send_at: `${sendAt.slice(0, 16)}:00`, time_zone: "device", past };
};

const audienceOf = ({ from, fileOf, targets }: Draft, { targets: moreTargets, recipients }: Json) => {
  if (from === "file") return { recipients: { upload: fileOf } };
  return targets.length > 0 ? { targets } : { targets: moreTargets, recipients };
};

/**
 * The values of a draft. Texts without a template may show only what the notification itself names: each variable of the file's first
 * recipient, whose value a line replaces.
 */
const valuesOf = (draft: Draft, { variables }: Json, first: FileRecipient | undefined) => {
  const shared = { ...(isJsonObject(variables) && variables), ...typedValues(draft) };
  if (draft.template !== "") return shared;
  const named = draft.from === "file" ? Object.keys(first?.variables ?? {}).map((name) => [name, ""]) : [];
  return named.length > 0 || variables !== undefined ? { ...Object.fromEntries(named), ...shared } : undefined;
};

/** Neither a file nor a local time of devices goes with a rollout. */
export const mayRollOut = ({ from, past }: Draft): boolean => from !== "file" && past === "";

/** Without the fields that are not set. */
const setFields = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""));

/**
 * A draft as the body of a send. The dry run and the test push are made of it too ({@link dryRunOf}, {@link testOf}), so that what they
 * accept is what is sent. `first`: the first recipient of the draft's file.
 */
export const notificationOf = (draft: Draft, first?: FileRecipient): NewNotification => {
  const all = moreOf(draft) ?? {};
  const { send_at: _, time_zone: __, past: ___, targets: ____, recipients: _____, ...more } = all;
  return {
    ...more,
    ...setFields({
      template: draft.template,
      variables: valuesOf(draft, all, first),
      kind: draft.kind,
      ...sentOf(contentFields, draft),
      ...timeOf(draft, all),
      rollout: mayRollOut(draft) ? rolloutOf(draft.rollout) : undefined,
      ...audienceOf(draft, all),
    }),
  };
};

/** Whether it has something to show, or wakes an app or an extension, which needs no text. */
export const hasContent = ({ title, body, template, silent, push_type: type }: NewNotification): boolean =>
  (title ?? body ?? template ?? type) !== undefined || silent === true;

/** The first recipient, whose target the API checks, with values of the types that its template declares. */
const typedRecipient = ({ target, variables }: FileRecipient, { variables: declared }: Draft) => {
  const typeOf = (name: string) => declared.find((one) => one.name === name)?.type ?? "string";
  return {
    target: target as RecipientTarget,
    variables: Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [
        name,
        typeof value === "string" ? typedValue(typeOf(name), value) : value,
      ]),
    ),
  };
};

/** What the dry run of a draft asks; undefined: it has no recipients yet. A file stands for its first recipient until Herald reads it. */
export const dryRunOf = (draft: Draft, first?: FileRecipient): NewNotification | undefined => {
  const send = notificationOf(draft, first);
  // The dry run counts devices before a title or body is typed, but the API requires one.
  const worded = hasContent(send) ? send : { ...send, body: "…" };
  if (draft.from === "file") return first && { ...worded, recipients: [typedRecipient(first, draft)] };
  return send.targets === undefined && send.recipients === undefined ? undefined : worded;
};

/** The same message to one device, now. The API checks the target. Of recipients with values of their own, it has those of the first. */
export const testOf = (draft: Draft, target: string, first?: FileRecipient): NewNotification => {
  const { send_at: _, time_zone: __, past: ___, rollout: ____, ...untimed } = notificationOf(draft, first);
  const { targets: _____, escalate_after: ______, recipients, ...message } = untimed;
  if (recipients === undefined) return { ...message, targets: [target as Target] };
  const variables = Array.isArray(recipients)
    ? recipients[0]?.variables
    : first && typedRecipient(first, draft).variables;
  return { ...message, recipients: [{ target: target as RecipientTarget, variables }] };
};

/** The fields of a send that only `more` can have. */
const onlyMore = [
  ...["app", "data", "badge", "badge_image", "sound", "category", "click_action", "silent", "priority", "ttl"],
  ...["collapse_id", "labels", "push_type", "push_name", "localizations", "ios", "android", "web"],
] as const satisfies readonly (keyof NewNotification & keyof Notification)[];

/** A notification that was sent, as a draft with all that it had, but its time and the values of its recipients. */
export const draftOf = (notification: Notification): Draft => {
  const { buttons = [], recipients } = notification;
  const inForm = buttons.every(({ destructive }) => destructive === undefined);
  const more = {
    ...setFields(Object.fromEntries(onlyMore.map((name) => [name, notification[name]]))),
    ...(!inForm && { buttons }),
  };
  return {
    ...emptyDraft,
    ...enteredOf(contentFields, { ...notification, buttons: inForm ? buttons : [] }),
    kind: notification.kind ?? "",
    from: recipients === undefined ? "targets" : "file",
    fileOf: (recipients?.kind ?? "user") as Draft["fileOf"],
    targets: notification.targets,
    rollout: enteredRollout(notification.rollout),
    more: Object.keys(more).length === 0 ? "" : JSON.stringify(more, null, 2),
  };
};
