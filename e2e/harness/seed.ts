import type { Capability, DeviceId, Platform } from "@herald/contracts";
import { type SeedDevice, seedDevices } from "../../services/registry/test/seed-devices.ts";
import { inParallel } from "./in-parallel.ts";
import { apnsToken, type Project, plainPrefix } from "./project.ts";
import type { System } from "./system.ts";

/**
 * Stores devices of one platform in the project as their registrations would, thousands in a second. Their push tokens begin with the
 * hexadecimal `prefix`, which scripts of the simulator match.
 */
export async function seed(
  { registryDatabase: { client, name }, simulators }: System,
  project: Project,
  count: number,
  {
    prefix = plainPrefix,
    topics = [],
    platform = "ios",
    capabilities = [],
  }: { prefix?: string; topics?: readonly string[]; platform?: Platform; capabilities?: readonly Capability[] } = {},
): Promise<{ id: DeviceId; token: string }[]> {
  const addresses = await inParallel(Array.from({ length: count }), 8, () => newAddress(simulators, platform, prefix));
  const devices: SeedDevice[] = addresses.map((address) => ({ ...address, platform, topics, capabilities }));
  const ids: DeviceId[] = [];
  for await (const written of seedDevices(client.db(name), project.id, devices)) ids.push(...written);
  return ids.flatMap((id, index) => {
    const token = devices[index]?.token;
    return token === undefined ? [] : [{ id, token }];
  });
}

/** A new push token, or a new subscription at the simulator. */
export async function newAddress(
  simulators: Pick<System["simulators"], "subscribe">,
  platform: Platform,
  prefix = plainPrefix,
): Promise<Pick<SeedDevice, "token" | "keys">> {
  if (platform !== "web") return { token: apnsToken(prefix) }; // FCM accepts this format too
  const { endpoint, keys } = await simulators.subscribe(prefix);
  return { token: endpoint, keys };
}
