import {
  mergePatch,
  type NotificationContent,
  type NotificationId,
  type ProjectId,
  withoutDangerousLinks,
} from "@herald/contracts";

/** Which notification a payload belongs to: what the device needs to report an open. */
export type Origin = { readonly projectId: ProjectId; readonly notificationId: NotificationId };

/** What a later push must carry too to take this one's place: by default only a repeat of it does. */
export const collapseIdOf = ({ collapse_id }: NotificationContent, { notificationId }: Origin): string =>
  collapse_id ?? notificationId;

/** JSON around the open token, which is the only thing that differs between two devices with the same words. */
export type Template = { readonly head: string; readonly tail: string };

/** An object without the fields that are undefined, so that they neither weigh nor override. */
export const compact = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/**
 * The caller's override, merged over what Herald rendered. Dangerous links are refused when a notification is accepted; those of
 * one that an older gateway accepted end here.
 */
export const override = (
  rendered: Record<string, unknown>,
  patch: NotificationContent["ios"],
): Record<string, unknown> => withoutDangerousLinks(patch === undefined ? rendered : mergePatch(rendered, patch));

/** The JSON of an object with one more field, `token`, at its end. The object may not be empty. */
export const withOpenToken = (object: Record<string, unknown>): Template => ({
  head: `${JSON.stringify(object).slice(0, -1)},"token":"`,
  tail: '"}',
});
