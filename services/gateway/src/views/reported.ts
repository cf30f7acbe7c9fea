import type { Delivery, openRequests } from "@herald/contracts";
import type { z } from "zod";

/** What a device reported of a push, as the API shows it. */
export type Reported = Pick<Delivery, "received_at" | "opened_at" | "button" | "dismissed_at">;

type Answer = z.output<typeof openRequests.ofDevices.answer>;

/** What a device reported. `key`: its id, or that of the notification, as the request to analytics asked. */
export const reportedOf = (
  { openedAt, receivedAt = {}, dismissedAt = {}, buttons = {} }: Answer,
  key: string,
): Reported => ({
  ...(receivedAt[key] !== undefined && { received_at: receivedAt[key] }),
  ...(openedAt[key] !== undefined && { opened_at: openedAt[key] }),
  ...(buttons[key] !== undefined && { button: buttons[key] }),
  ...(dismissedAt[key] !== undefined && { dismissed_at: dismissedAt[key] }),
});

/** Adds to rows what devices reported. `read` asks analytics, by the id that `idOf` gives. */
export const withReported = async <Row extends object>(
  rows: Row[],
  idOf: (row: Row) => string,
  read: () => Promise<Answer>,
): Promise<(Row & Reported)[]> => {
  if (rows.length === 0) return rows;
  const answer = await read();
  return rows.map((row) => ({ ...row, ...reportedOf(answer, idOf(row)) }));
};
