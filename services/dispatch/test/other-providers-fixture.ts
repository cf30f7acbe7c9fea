import { generateKeyPairSync } from "node:crypto";
import { sendRequest } from "@herald/bus";
import { type ProjectId, providerRequests } from "@herald/contracts";
import type { DispatchTest } from "./dispatch-fixture.ts";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const serviceAccount = {
  type: "service_account",
  project_id: "herald-tests",
  client_email: "herald@herald-tests.iam.gserviceaccount.com",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
};

/** Settings for a provider that sends to the simulators. */
export const putOther = (
  { simulators, bus }: DispatchTest,
  projectId: ProjectId,
  provider: "fcm" | "webpush",
  settings: Record<string, unknown> = provider === "fcm" ? { service_account: serviceAccount } : {},
) => {
  const endpoint = simulators[provider].url;
  return sendRequest(bus, providerRequests.put, {
    projectId,
    provider,
    settings: { endpoint, ca: simulators.ca, ...settings },
  });
};
