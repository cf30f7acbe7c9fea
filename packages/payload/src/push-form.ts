import { hash } from "node:crypto";
import {
  type Capabilities,
  hasCapability,
  type Lane,
  type NotificationContent,
  type NotificationId,
  type Platform,
  type Recipient,
  withoutDangerousLinks,
} from "@herald/contracts";
import { type PushForm, plainForm, type Words } from "./render.ts";

/** The form with everything in it, which a device with all capabilities gets. */
export const fullForm = ({ receipts, buttons, silent }: Content): PushForm =>
  silent ? plainForm : formFrom(shareOf(receipts) > 0, buttons !== undefined, broadcastSeconds);

/** The form of an Android app that draws the notification itself; `plainForm`: none does. */
export const drawnForm = (content: Content): PushForm =>
  content.priority === "normal" ? plainForm : fullForm(content);

/** The receipts of a broadcast arrive over this time, so that they are no burst. */
const broadcastSeconds = 25;

type Content = Pick<NotificationContent, "receipts" | "buttons" | "priority" | "silent">;
type Push = { readonly notificationId: NotificationId; readonly platform: Platform };
type Device = Pick<Recipient, "id" | "capabilities">;

const shareOf = (receipts: Content["receipts"]): number => (typeof receipts === "number" ? receipts : receipts ? 1 : 0);

/** In [0, 1), evenly over devices, and the same each time. */
const fractionOf = (notificationId: NotificationId, deviceId: string): number =>
  Number.parseInt(hash("sha256", `${notificationId}/${deviceId}/receipt`, "hex").slice(0, 8), 16) / 2 ** 32;

/**
 * Whether the device's kit acts on this push. On Android it does so only if it draws the notification, and FCM starts an app at once only
 * for messages of high priority.
 */
const acts = (content: Content, platform: Platform, capabilities: Capabilities | undefined): boolean =>
  !content.silent &&
  (platform !== "android" || (content.priority !== "normal" && hasCapability(capabilities, "draws")));

/**
 * Decides which devices are asked for a receipt; undefined: none. It depends on the ids and the notification alone: rendering and counting
 * use it, and a repeat asks the same devices.
 */
export const receiptAsker = (
  content: Content,
  { notificationId, platform }: Push,
): ((device: Device) => boolean) | undefined => {
  const share = shareOf(content.receipts);
  if (share === 0) return undefined;
  return ({ id, capabilities }) =>
    hasCapability(capabilities, "receipts") &&
    acts(content, platform, capabilities) &&
    (share === 1 || fractionOf(notificationId, id) < share);
};

const formFrom = (asked: boolean, buttons: boolean, seconds: number): PushForm =>
  asked || buttons ? { ...(asked && { receipt: seconds }), ...(buttons && { buttons: true }) } : plainForm;

/** The form of a push with more than the plain one for each of its devices. `lane`: receipts of few devices come at once. */
export const pushForms = (content: Content, push: Push & { readonly lane: Lane }): ((device: Device) => PushForm) => {
  const isAsked = receiptAsker(content, push);
  const seconds = push.lane === "direct" ? 0 : broadcastSeconds;
  // Each form is one object, which `perForm` finds again.
  const forms = [false, true].map((asked) => [false, true].map((buttons) => formFrom(asked, buttons, seconds)));
  return (device) => {
    const { capabilities } = device;
    const shows = hasCapability(capabilities, "buttons") && acts(content, push.platform, capabilities);
    const buttons = content.buttons !== undefined && shows;
    return forms[isAsked?.(device) ? 1 : 0]?.[buttons ? 1 : 0] ?? plainForm;
  };
};

/** The buttons of a form with their titles in the device's language; undefined: none. */
export const buttonsOf = ({ buttons }: NotificationContent, words: Words, form: PushForm) =>
  form.buttons &&
  buttons?.map((button) => withoutDangerousLinks({ ...button, title: words.buttons?.[button.id] ?? button.title }));

/** What the app's kit needs to act on a push; set after an override. */
export const kitFields = (content: NotificationContent, words: Words, form: PushForm) => {
  const buttons = buttonsOf(content, words, form);
  return { ...(buttons && { buttons }), ...(form.receipt !== undefined && { receipt: form.receipt }) };
};
