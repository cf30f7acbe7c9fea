import { ask, askGrouped, type Bus } from "@herald/bus";
import { IdentifyDevice, RegisterDeviceQuestion } from "@herald/contracts";
import type { Ask } from "./gateway.ts";

/** What apps ask by the thousand a second; registry writes those of the same moment together anyway. */
const groupedQuestions = [RegisterDeviceQuestion, IdentifyDevice] as const;

/** Asks other services; registrations of the same moment in one message. */
export const createAsk = (bus: () => Bus): Ask => {
  const grouped = new Map<string, (data: never) => Promise<unknown>>(
    groupedQuestions.map((question) => [question.name, askGrouped(bus, question as typeof RegisterDeviceQuestion)]),
  );
  const askAny: Ask = async (question, data, options) => ask(bus(), question, data, options);
  return ((question, data, options) =>
    grouped.get(question.name)?.(data as never) ?? askAny(question, data, options)) as Ask;
};
