import type { Row } from "../row.ts";
import { activitiesRow } from "./activities-row.ts";
import { batchRow } from "./batch-row.ts";
import { besideBroadcastRow } from "./beside-broadcast-row.ts";
import { broadcastRows } from "./broadcast-row.ts";
import { deviceListRow } from "./device-list-row.ts";
import { deviceValuesRow } from "./device-values-row.ts";
import { directRows, slowDirectRow } from "./direct-row.ts";
import { exportsRow } from "./exports-row.ts";
import { forgedOpensRow } from "./forged-opens-row.ts";
import { growthRow } from "./growth-row.ts";
import { idleMemoryRow } from "./idle-memory-row.ts";
import { importsRow } from "./imports-row.ts";
import { latencyRow } from "./latency-row.ts";
import { neighbourRow } from "./neighbour-row.ts";
import { opensRow } from "./opens-row.ts";
import { peerRow } from "./peer-row.ts";
import { receiptsRow } from "./receipts-row.ts";
import { inlineRecipientsRow, recipientsRow } from "./recipients-row.ts";
import { registrationsRow } from "./registrations-row.ts";
import { pausesRow, rolloutRow } from "./rollout-row.ts";
import { rulesRow } from "./rules-row.ts";
import { sendsRow } from "./sends-row.ts";
import { slowProviderRow } from "./slow-provider-row.ts";
import { statsRow } from "./stats-row.ts";
import { templateRow } from "./template-row.ts";
import { userLookupsRow } from "./user-lookups-row.ts";
import { wavesRow } from "./waves-row.ts";

/** Every row, in the order in which they are measured. */
export const allRows: readonly Row[] = [
  // First, before anything is sent.
  idleMemoryRow,
  // Before the rows that compare themselves with the peer.
  peerRow,
  ...directRows,
  slowDirectRow,
  batchRow,
  inlineRecipientsRow,
  templateRow,
  latencyRow,
  activitiesRow,
  neighbourRow,
  sendsRow,
  ...broadcastRows,
  slowProviderRow,
  besideBroadcastRow,
  recipientsRow,
  deviceValuesRow,
  receiptsRow,
  rulesRow,
  wavesRow,
  rolloutRow,
  pausesRow,
  opensRow,
  forgedOpensRow,
  registrationsRow,
  importsRow,
  deviceListRow,
  exportsRow,
  statsRow,
  userLookupsRow,
  // Last, because it takes longest.
  growthRow,
];
