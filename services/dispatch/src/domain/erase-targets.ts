import {
  erasedTarget,
  type NotificationContent,
  type ProjectId,
  type RecipientLine,
  type SendV1,
  userKey,
  userKeysOf,
} from "@herald/contracts";

/** A user who was erased at a time. `key`: the user's `userKey`. */
export type Erased = { readonly projectId: ProjectId; readonly key: string; readonly at: Date };

/** Tests whether a target is the erased user. */
export const isTargetOf =
  ({ projectId, key }: Pick<Erased, "projectId" | "key">) =>
  (target: string): boolean =>
    userKeysOf(projectId, [target]).includes(key);

/** Content without an erased user. What was sent only to erased users is erased with them, and only matches no device. */
export const eraseTargets = (
  content: NotificationContent,
  erased: Pick<Erased, "projectId" | "key">,
): { readonly content: NotificationContent; readonly isErased: boolean } => {
  const isTheirs = isTargetOf(erased);
  const targets = content.targets.map((target) => (isTheirs(target) ? erasedTarget : target));
  const isErased = targets.every((target) => target === erasedTarget);
  return { content: { ...(isErased ? { title: "[erased]" } : content), targets }, isErased };
};

/** Recipients without the key and the values of an erased user. Their places stay, so that a page is cut in the same way again. */
export const eraseLines = (
  lines: readonly RecipientLine[],
  { projectId, key }: Pick<Erased, "projectId" | "key">,
): RecipientLine[] =>
  lines.map((line) =>
    line.key !== "" && userKey(projectId, line.key) === key ? { n: line.n, key: "", values: {} } : line,
  );

/** A send without an erased user. */
export const eraseFromSend = <Send extends SendV1>(send: Send, erased: Erased): Send =>
  send.recipients === undefined
    ? { ...send, content: eraseTargets(send.content, erased).content }
    : { ...send, recipients: send.recipients.map((chunk) => eraseLines(chunk, erased)) };
