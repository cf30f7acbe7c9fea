import {
  erasedTarget,
  type NotificationContent,
  type ProjectId,
  type RecipientLine,
  type SendV1,
  targetKey,
  userKey,
} from "@herald/contracts";
import { personKeysOf } from "@herald/rules";

/** A user who was erased at a time, or some of the user's devices. */
export type Erased = {
  readonly projectId: ProjectId;
  /** The user's `userKey`. */
  readonly key: string;
  readonly at: Date;
  /** Then only what was sent to these devices, and to these push tokens by `targetKey`, is erased. */
  readonly devices?: readonly string[] | undefined;
  readonly tokens?: readonly string[] | undefined;
};

/** The keys of all that is erased, as `personKeysOf` gives them. */
export const erasedKeysOf = ({ projectId, key, devices, tokens = [] }: Erased): ReadonlySet<string> =>
  new Set(devices ? [...devices.map((id) => targetKey(projectId, `device:${id}`)), ...tokens] : [key]);

/** Tests whether a target is erased. */
export const isTargetOf = (erased: Erased): ((target: string) => boolean) => {
  const keys = erasedKeysOf(erased);
  return (target) => personKeysOf(erased.projectId, [target]).some((key) => keys.has(key));
};

/**
 * Content without an erased user. What was sent only to erased users is erased with them, and only matches no device. `isWhole`: whether it
 * was, if that is known; by default as its targets say.
 */
export const eraseTargets = (
  content: NotificationContent,
  erased: Erased,
  isWhole?: boolean,
): { readonly content: NotificationContent; readonly isErased: boolean } => {
  const isTheirs = isTargetOf(erased);
  const targets = content.targets.map((target) => (isWhole || isTheirs(target) ? erasedTarget : target));
  const isErased = isWhole ?? (targets.length > 0 && targets.every((target) => target === erasedTarget));
  const { recipients } = content;
  const rest = isErased ? { title: "[erased]", ...(recipients && { recipients }) } : content;
  return { content: { ...rest, targets }, isErased };
};

/** Recipients without the key and the values of an erased user. Their places stay, so that a page is cut in the same way again. */
export const eraseLines = (lines: readonly RecipientLine[], erased: Erased): RecipientLine[] => {
  const { projectId } = erased;
  const keys = erasedKeysOf(erased);
  const devices = new Set(erased.devices);
  const isTheirs = (key: string) =>
    erased.devices
      ? devices.has(key) || keys.has(targetKey(projectId, `token:${key}`))
      : keys.has(userKey(projectId, key));
  return lines.map((line) => (line.key !== "" && isTheirs(line.key) ? { n: line.n, key: "", values: {} } : line));
};

/** A send without an erased user. */
export const eraseFromSend = <Send extends SendV1>(send: Send, erased: Erased): Send => {
  const recipients = send.recipients?.map((chunk) => eraseLines(chunk, erased));
  const isEmpty = recipients?.flat().every(({ key }) => key === "");
  const { content, isErased } = eraseTargets(send.content, erased, isEmpty);
  return { ...send, content, ...(recipients && { recipients }), ...(isErased && { personal: undefined }) };
};
