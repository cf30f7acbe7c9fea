import { type DeadLetter, DeadLetterId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type Bus, type Connection, connectionOf } from "../connect.ts";
import { directRead, type Stored } from "../direct-read.ts";
import { deadLetterSubjects, describeLetter } from "./describe-letter.ts";
import { deadLetterStream } from "./list-dead-letters.ts";
import { readReplays } from "./replay-records.ts";

/** A dead letter by its id: its headers, never its body. Throws HeraldError dead-letter-not-found or bus-unavailable. */
export const getDeadLetter = async (bus: Bus, id: string): Promise<DeadLetter> => {
  const connection = connectionOf(bus);
  const stored = await readDeadLetter(connection, id);
  const replays = await readReplays(connection, [stored]);
  return { ...describeLetter(stored), ...replays.get(stored.sequence) };
};

/** The whole of it. */
export const readDeadLetter = async (connection: Connection, id: string): Promise<Stored> => {
  const sequence = DeadLetterId.safeParse(id).success ? Number(id) : undefined;
  if (sequence !== undefined) {
    // The next one is read where this one is gone.
    const query = { seq: sequence, batch: 1, next_by_subj: deadLetterSubjects };
    const [stored] = await directRead(connection, deadLetterStream, query, (message) => message);
    if (stored?.sequence === sequence) return stored;
  }
  throw new HeraldError("dead-letter-not-found", "id: there is no such dead letter; they are kept for 30 days");
};
