import { cutText, importLimits } from "@herald/contracts";
import type { ParsedDevice, PutResult } from "../requests/put-devices.ts";
import type { CountedNote, GivenCounts } from "../stores/import-store.ts";
import type { FieldNote } from "./formats/fields.ts";

const cut = (name: string): string => cutText(name, importLimits.fieldLength).toWellFormed();

/** Counts what the report of an import says about the lines of a chunk. It follows from the lines alone, so a repeat counts the same. */
export const createChunkReport = () => {
  const counted = new Map<string, { note: FieldNote; lines: number }>();
  let unsupported = 0;
  return {
    addUnsupported: (): void => {
      unsupported++;
    },
    /** Adds the notes of a line. */
    addNotes: (notes: readonly FieldNote[]): void => {
      const ofLine = new Set<string>();
      for (const { kind, field, name } of notes) {
        const note = { kind, field: cut(field), ...(name !== undefined && { name: cut(name) }) };
        const key = `${kind}\n${note.field}\n${note.name ?? ""}`;
        if (ofLine.has(key)) continue;
        ofLine.add(key);
        const known = counted.get(key);
        if (known) known.lines++;
        else counted.set(key, { note, lines: 1 });
      }
    },
    unsupported: (): number => unsupported,
    /** At most 200, those of the most lines first. */
    notes: (): CountedNote[] =>
      [...counted.values()]
        .sort((one, other) => other.lines - one.lines)
        .slice(0, importLimits.reportedFields)
        .map(({ note, lines }) => ({ ...note, lines })),
  };
};
export type ChunkReport = ReturnType<typeof createChunkReport>;

/** Counts what the devices of a chunk were given, without refused ones. */
export const countGiven = (devices: readonly ParsedDevice[], results: readonly PutResult[]): GivenCounts => {
  const counts = { users: 0, timeZones: 0, locales: 0, times: 0 };
  for (const [at, one] of devices.entries()) {
    if (!("device" in one) || results[at]?.result === "refused") continue;
    const { user_id: userId, identifiers = {}, last_seen_at: lastSeenAt } = one.device;
    if (typeof userId === "string") counts.users++;
    if (typeof identifiers.current_time_zone === "string") counts.timeZones++;
    if (typeof identifiers.current_locale === "string") counts.locales++;
    if (lastSeenAt !== undefined) counts.times++;
  }
  return counts;
};
