import { messages } from "./catalogue.ts";
import type { MessageContract } from "./envelope.ts";

const contracts: readonly MessageContract[] = Object.values(messages) as unknown as MessageContract[];

const token = /^[A-Za-z0-9_-]+$/;

const matches = (filter: string, subject: string): boolean => {
  const [wanted, given] = [filter.split("."), subject.split(".")];
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part === "*" ? token.test(given[index] ?? "") : part === given[index]))
  );
};

/** The contract of which a message on this subject is; undefined where no contract has it, and for a pattern of subjects. */
export const contractOf = (subject: string): MessageContract | undefined =>
  contracts.find(({ filter }) => matches(filter, subject));
