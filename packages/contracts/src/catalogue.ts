import {
  DeliverBatchV1,
  DrainBacklogV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  ImportChunkV1,
  OpenGroupV1,
  SendGroupV1,
  SendOneV1,
  SendV1,
} from "./commands.ts";
import { events } from "./events.ts";

/** Every message that any stream carries, by the name that is on the wire. */
export const messages = {
  SendV1,
  SendGroupV1,
  SendOneV1,
  DrainBacklogV1,
  ExpandV1,
  ExpandedV1,
  DeliverBatchV1,
  DueV1,
  OpenGroupV1,
  ImportChunkV1,
  ...events,
} as const;
