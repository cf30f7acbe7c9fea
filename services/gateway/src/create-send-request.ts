import { type Bus, sendGroupedRequest, sendRequest } from "@herald/bus";
import { IdentifyDevice, RegisterDeviceRequest } from "@herald/contracts";
import type { SendRequest } from "./deps.ts";

/** What apps ask by the thousand a second; registry writes those of the same moment together anyway. */
const groupedRequests = [RegisterDeviceRequest, IdentifyDevice] as const;

/** Asks other services; registrations of the same moment in one message. */
export const createSendRequest = (bus: () => Bus): SendRequest => {
  const grouped = new Map<string, (data: never) => Promise<unknown>>(
    groupedRequests.map((question) => [
      question.name,
      sendGroupedRequest(bus, question as typeof RegisterDeviceRequest),
    ]),
  );
  const askAny: SendRequest = async (question, data, options) => sendRequest(bus(), question, data, options);
  return ((question, data, options) =>
    grouped.get(question.name)?.(data as never) ?? askAny(question, data, options)) as SendRequest;
};
