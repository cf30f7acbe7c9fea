import { SignJWT } from "jose";
import { signingKey, type VapidKeys } from "./vapid-keys.ts";

const hourMs = 3_600_000;
/** Push services refuse more than 24 hours; half of it leaves room for clocks that differ. */
const lifetimeMs = 12 * hourMs;
/** Used no longer than this, so that none is refused on its way. */
const reusedMs = 11 * hourMs;
const maxKept = 256;

/** The sender's word for itself to each push service (RFC 8292); signed twice a day for each. */
export function createVapid({ subject, ...keys }: VapidKeys & { readonly subject: string }, now: () => Date) {
  const key = signingKey(keys);
  const known = new Map<string, { readonly header: Promise<string>; readonly signedAt: number }>();

  const sign = async (origin: string, at: number): Promise<string> => {
    const jwt = await new SignJWT({ aud: origin, sub: subject, exp: Math.floor((at + lifetimeMs) / 1_000) })
      .setProtectedHeader({ typ: "JWT", alg: "ES256" })
      .sign(key);
    return `vapid t=${jwt}, k=${keys.public_key}`;
  };

  return {
    /** The `authorization` for a push service's origin. */
    headerFor(origin: string): Promise<string> {
      const at = now().getTime();
      const found = known.get(origin);
      const age = found === undefined ? Number.POSITIVE_INFINITY : at - found.signedAt;
      if (found !== undefined && age >= 0 && age < reusedMs) return found.header;
      if (known.size >= maxKept) known.clear();
      const header = sign(origin, at);
      known.set(origin, { header, signedAt: at });
      return header;
    },
  };
}
