import type { Row } from "../row.ts";
import { broadcastRows } from "./broadcast-row.ts";
import { forgedOpensRow } from "./forged-opens-row.ts";
import { opensRow } from "./opens-row.ts";

/** Every row, in the order in which they are measured. */
export const allRows: readonly Row[] = [...broadcastRows, opensRow, forgedOpensRow];
