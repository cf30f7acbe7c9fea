import { type ProjectId, userKey } from "@herald/contracts";

/** The JSON of an event without a user: each text that is the user's id becomes null. The same text when there is none. */
export const erasePayload = (payload: string, projectId: ProjectId, key: string): string => {
  let found = false;
  const erased: unknown = JSON.parse(payload, (_, value: unknown) => {
    if (typeof value !== "string" || value.length > 128 || userKey(projectId, value) !== key) return value;
    found = true;
    return null;
  });
  return found ? JSON.stringify(erased) : payload;
};
