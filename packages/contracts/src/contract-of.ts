import { messages } from "./catalogue.ts";
import type { MessageContract } from "./envelope.ts";

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

/** The contract of which a message on this subject is; undefined where no contract has it, and for a pattern of subjects. */
export const contractOf = (subject: string): MessageContract | undefined =>
  contracts.find(({ filter }) => matches(filter, subject));
