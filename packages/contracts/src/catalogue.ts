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
import type { MessageContract } from "./envelope.ts";
import { events } from "./events.ts";

/** Every message in any stream, by its name on the wire. */
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

const contracts: readonly MessageContract[] = Object.values(messages) as unknown as MessageContract[];

const token = /^[A-Za-z0-9_-]+$/;

const matches = (filter: string, subject: string): boolean => {
  const [wanted, given] = [filter.split("."), subject.split(".")];
  const open = wanted.at(-1) === ">";
  if (open ? given.length < wanted.length : given.length !== wanted.length) return false;
  return given.every((part, index) => {
    const expected = wanted[index] ?? ">";
    return expected === "*" || expected === ">" ? token.test(part) : part === expected;
  });
};

/** The contract of the messages on a subject; undefined for unknown subjects and for patterns of subjects. */
export const contractOf = (subject: string): MessageContract | undefined =>
  contracts.find(({ filter }) => matches(filter, subject));
