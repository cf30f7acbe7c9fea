import { type ProjectId, userKey } from "@herald/contracts";

/** Replaces each string that is the user's id by null; returns the same text when there is none. */
export const erasePayload = (payload: string, projectId: ProjectId, key: string): string => {
  let found = false;
  const erased: unknown = JSON.parse(payload, (_, value: unknown) => {
    if (typeof value !== "string" || value.length > 128 || userKey(projectId, value) !== key) return value;
    found = true;
    return null;
  });
  return found ? JSON.stringify(erased) : payload;
};
