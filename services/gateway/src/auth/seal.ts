import { hkdfSync } from "node:crypto";
import { decrypt, encrypt } from "@herald/kit";
import type { OpenKey } from "@herald/payload";

const keyBytes = 32;

/**
 * Encrypts what clients keep for Herald, for one purpose and owner. The keys are derived from those that sign open tokens, which all
 * gateways share; the first encrypts, all decrypt.
 */
export const createSeal = (keys: readonly [OpenKey, ...OpenKey[]], purpose: string, owner = "") => {
  const binding = Buffer.from(owner);
  const derive = ({ secret }: OpenKey) =>
    new Uint8Array(hkdfSync("sha256", secret, "", `${purpose} ${owner}`, keyBytes));
  const [first, ...others] = keys;
  const ring = [derive(first), ...others.map(derive)] as const;
  return {
    /** Base64url; each call returns another text. */
    seal: (bytes: Uint8Array): string => encrypt(ring[0], bytes, binding).toString("base64url"),
    /** Undefined if the text is malformed, forged, or for another purpose or owner. */
    open: (text: string): Buffer | undefined => {
      const bytes = Buffer.from(text, "base64url");
      // The decoder ignores what is not base64url, and bits that are left at the end.
      if (bytes.toString("base64url") !== text) return undefined;
      for (const key of ring) {
        try {
          return decrypt(key, bytes, binding);
        } catch {
          // Another key of the ring may fit.
        }
      }
      return undefined;
    },
  };
};
