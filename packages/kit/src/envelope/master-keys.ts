/** A key from the environment that wraps the data keys of records. */
export type MasterKey = { readonly id: string; readonly secret: Buffer };
/** The first wraps, all of them unwrap, so a key can be rotated. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]];

const keyBytes = 32;

/**
 * Reads `<id>:<base64 of 32 bytes>`, several joined by commas, the wrapping one first. Says in words what is wrong with it.
 * Its messages hold no key.
 */
export const parseMasterKeys = (text: string): { keys: MasterKeys } | { problem: string } => {
  const keys: MasterKey[] = [];
  for (const entry of text.split(",")) {
    const [, id = "", secret = ""] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9+/_-]+={0,2})$/.exec(entry.trim()) ?? [];
    if (id === "") return { problem: "each key must be <id>:<base64>, the id of 1 to 16 letters and digits" };
    const bytes = Buffer.from(secret, "base64");
    if (bytes.length !== keyBytes) return { problem: `the key ${id} must be 32 bytes of base64` };
    if (keys.some((key) => key.id === id)) return { problem: `the key id ${id} stands twice` };
    keys.push({ id, secret: bytes });
  }
  const [first, ...rest] = keys;
  return first === undefined ? { problem: "at least one key is required" } : { keys: [first, ...rest] };
};
