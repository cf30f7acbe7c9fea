import { erasedTarget, type NotificationContent, type ProjectId, userKeysOf } from "@herald/contracts";

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
