import { hkdfSync } from "node:crypto";
import type { EventPosition } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { decrypt, encrypt } from "@herald/kit";
import type { OpenKey } from "@herald/payload";

/** A nonce of 12 bytes, the position of 8 and a tag of 16 in base64url. */
const form = /^[A-Za-z0-9_-]{48}$/;

const keyBytes = 32;
/** Holds every sequence that a number holds exactly. */
const sequenceBytes = 6;
/** How many events of a message that has several; 0: all. */
const partBytes = 2;

export type EventPositions = ReturnType<ReturnType<typeof createEventPositions>>;

/**
 * The positions that clients resume from. All projects share the stream, so the difference of two sequences would tell a project how much
 * the others publish: clients get the position encrypted under a key of their project. The key is derived from those that sign open tokens,
 * which all gateways share; the first encrypts, all decrypt.
 */
export const createEventPositions = (keys: readonly [OpenKey, ...OpenKey[]]) => (projectId: ProjectId) => {
  const derive = ({ secret }: OpenKey) =>
    new Uint8Array(hkdfSync("sha256", secret, "", `herald event position ${projectId}`, keyBytes));
  const [first, ...others] = keys;
  const ring = [derive(first), ...others.map(derive)] as const;
  const binding = Buffer.from(projectId);
  return {
    /** Each call returns another text, so that an unchanged position also tells nothing. */
    seal: ({ sequence, part = 0 }: EventPosition): string => {
      const bytes = Buffer.alloc(sequenceBytes + partBytes);
      bytes.writeUIntBE(sequence, 0, sequenceBytes);
      bytes.writeUIntBE(part, sequenceBytes, partBytes);
      return encrypt(ring[0], bytes, binding).toString("base64url");
    },
    /** Undefined if the text is malformed, forged or another project's. */
    open: (position: string): EventPosition | undefined => {
      if (!form.test(position)) return undefined;
      const bytes = Buffer.from(position, "base64url");
      for (const key of ring) {
        try {
          const opened = decrypt(key, bytes, binding);
          const part = opened.readUIntBE(sequenceBytes, partBytes);
          return { sequence: opened.readUIntBE(0, sequenceBytes), ...(part > 0 && { part }) };
        } catch {
          // Another key of the ring may fit.
        }
      }
      return undefined;
    },
  };
};
