import type { Row } from "../row.ts";
import { besideBroadcastRow } from "./beside-broadcast-row.ts";
import { broadcastRows } from "./broadcast-row.ts";
import { deviceListRow } from "./device-list-row.ts";
import { directRow } from "./direct-row.ts";
import { forgedOpensRow } from "./forged-opens-row.ts";
import { growthRow } from "./growth-row.ts";
import { latencyRow } from "./latency-row.ts";
import { opensRow } from "./opens-row.ts";
import { registrationsRow } from "./registrations-row.ts";
import { sendsRow } from "./sends-row.ts";
import { slowProviderRow } from "./slow-provider-row.ts";
import { statsRow } from "./stats-row.ts";

/** Every row, in the order in which they are measured. */
export const allRows: readonly Row[] = [
  ...broadcastRows,
  slowProviderRow,
  besideBroadcastRow,
  opensRow,
  forgedOpensRow,
  sendsRow,
  directRow,
  latencyRow,
  registrationsRow,
  deviceListRow,
  statsRow,
  // The longest last.
  growthRow,
];
