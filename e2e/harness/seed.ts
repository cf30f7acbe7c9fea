import type { DeviceId, Platform } from "@herald/contracts";
import { type SeedDevice, seedDevices } from "../../services/registry/test/seed-devices.ts";
import { inParallel } from "./in-parallel.ts";
import { apnsToken, type Project } from "./project.ts";
import type { System } from "./system.ts";

/**
 * Puts devices of one platform into the project as their registrations would have: thousands in a second. `prefix`, which is
 * hexadecimal, begins their push tokens, for a script of the simulator to know them by.
 */
export async function seed(
  { registryDatabase: { client, name }, simulators }: System,
  project: Project,
  count: number,
  {
    prefix = "",
    topics = [],
    platform = "ios",
  }: { prefix?: string; topics?: readonly string[]; platform?: Platform } = {},
): Promise<{ id: DeviceId; token: string }[]> {
  const addresses = await inParallel(Array.from({ length: count }), 8, () => newAddress(simulators, platform, prefix));
  const devices: SeedDevice[] = addresses.map((address) => ({ ...address, platform, topics }));
  const ids: DeviceId[] = [];
  for await (const written of seedDevices(client.db(name), project.id, devices)) ids.push(...written);
  return ids.flatMap((id, index) => {
    const token = devices[index]?.token;
    return token === undefined ? [] : [{ id, token }];
  });
}

/** What a device of the platform registers with: a push token, or a subscription at the simulator. */
export async function newAddress(
  simulators: Pick<System["simulators"], "subscribe">,
  platform: Platform,
  prefix = "",
): Promise<Pick<SeedDevice, "token" | "keys">> {
  if (platform !== "web") return { token: apnsToken(prefix) }; // FCM's may look like that too
  const { endpoint, keys } = await simulators.subscribe(prefix === "" ? undefined : prefix);
  return { token: endpoint, keys };
}
