import { hkdfSync } from "node:crypto";
import type { ProjectId } from "@herald/contracts";
import { decrypt, encrypt } from "@herald/kit";
import type { OpenKey } from "@herald/payload";

/** A nonce of 12 bytes, the sequence of 6 and a tag of 16 in base64url. */
const form = /^[A-Za-z0-9_-]{46}$/;

const keyBytes = 32;
/** Holds every sequence that a number holds exactly. */
const sequenceBytes = 6;

export type EventPositions = ReturnType<ReturnType<typeof createEventPositions>>;

/**
 * The positions that clients resume from. All projects share the stream, so the difference of two sequences would tell a project how much
 * the others publish: clients get the sequence encrypted under a key of their project. The key is derived from those that sign open tokens,
 * which all gateways share; the first encrypts, all decrypt.
 */
export const createEventPositions = (keys: readonly [OpenKey, ...OpenKey[]]) => (projectId: ProjectId) => {
  const derive = ({ secret }: OpenKey) =>
    new Uint8Array(hkdfSync("sha256", secret, "", `herald event position ${projectId}`, keyBytes));
  const [first, ...others] = keys;
  const ring = [derive(first), ...others.map(derive)] as const;
  const binding = Buffer.from(projectId);
  return {
    /** The position of a sequence. Each call returns another, so that an unchanged position also tells nothing. */
    seal: (sequence: number): string => {
      const bytes = Buffer.alloc(sequenceBytes);
      bytes.writeUIntBE(sequence, 0, sequenceBytes);
      return encrypt(ring[0], bytes, binding).toString("base64url");
    },
    /** The sequence of a position; undefined if it is malformed, forged or another project's. */
    open: (position: string): number | undefined => {
      if (!form.test(position)) return undefined;
      const bytes = Buffer.from(position, "base64url");
      for (const key of ring) {
        try {
          return decrypt(key, bytes, binding).readUIntBE(0, sequenceBytes);
        } catch {
          // Another key of the ring may fit.
        }
      }
      return undefined;
    },
  };
};
