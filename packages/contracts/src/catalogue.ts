import { commands } from "./commands.ts";
import type { MessageContract } from "./envelope.ts";
import { events } from "./events.ts";

/** Every message in any stream, by its name on the wire. */
export const messages = { ...commands, ...events } as const;

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
