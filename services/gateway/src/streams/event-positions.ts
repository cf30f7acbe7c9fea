import type { EventPosition } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import type { OpenKey } from "@herald/payload";
import { createSeal } from "../auth/seal.ts";

/** Holds every sequence that a number holds exactly. */
const sequenceBytes = 6;
/** How many events of a message that has several; 0: all. */
const partBytes = 2;

export type EventPositions = ReturnType<ReturnType<typeof createEventPositions>>;

/**
 * The positions that clients resume from. All projects share the stream, so the difference of two sequences would tell a project how much
 * the others publish: clients get the position encrypted under a key of their project.
 */
export const createEventPositions = (keys: readonly [OpenKey, ...OpenKey[]]) => (projectId: ProjectId) => {
  const { seal, open } = createSeal(keys, "herald event position", projectId);
  return {
    /** Each call returns another text, so that an unchanged position also tells nothing. */
    seal: ({ sequence, part = 0 }: EventPosition): string => {
      const bytes = Buffer.alloc(sequenceBytes + partBytes);
      bytes.writeUIntBE(sequence, 0, sequenceBytes);
      bytes.writeUIntBE(part, sequenceBytes, partBytes);
      return seal(bytes);
    },
    /** Undefined if the text is malformed, forged or another project's. */
    open: (position: string): EventPosition | undefined => {
      const opened = open(position);
      if (opened?.length !== sequenceBytes + partBytes) return undefined;
      const part = opened.readUIntBE(sequenceBytes, partBytes);
      return { sequence: opened.readUIntBE(0, sequenceBytes), ...(part > 0 && { part }) };
    },
  };
};
