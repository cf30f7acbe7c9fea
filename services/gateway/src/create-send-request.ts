import { type Bus, sendGroupedRequest, sendRequest } from "@herald/bus";
import { IdentifyDevice, RegisterDeviceRequest } from "@herald/contracts";
import type { SendRequest } from "./deps.ts";

/** Apps send thousands of these a second, and registry writes those of the same moment together. */
const groupedRequests = [RegisterDeviceRequest, IdentifyDevice] as const;

/** Sends requests to other services; registrations of the same moment share a message. */
export const createSendRequest = (bus: () => Bus): SendRequest => {
  const grouped = new Map<string, (data: never) => Promise<unknown>>(
    groupedRequests.map((contract) => [
      contract.name,
      sendGroupedRequest(bus, contract as typeof RegisterDeviceRequest),
    ]),
  );
  const sendOne: SendRequest = async (contract, data, options) => sendRequest(bus(), contract, data, options);
  return ((contract, data, options) =>
    grouped.get(contract.name)?.(data as never) ?? sendOne(contract, data, options)) as SendRequest;
};
