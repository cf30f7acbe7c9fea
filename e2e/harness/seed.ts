import { randomBytes } from "node:crypto";
import type { DeviceId } from "@herald/contracts";
import { type SeedDevice, seedDevices } from "../../services/registry/src/stores/seed-devices.ts";
import type { Project } from "./project.ts";
import type { System } from "./system.ts";

/**
 * Puts iOS devices into the project as their registrations would have: thousands in a second. `prefix` begins their push
 * tokens, for a script of the simulator to know them by.
 */
export async function seed(
  { registryDatabase: { client, name } }: System,
  project: Project,
  count: number,
  { prefix = "", topics = [] }: { prefix?: string; topics?: readonly string[] } = {},
): Promise<{ id: DeviceId; token: string }[]> {
  const devices: SeedDevice[] = Array.from({ length: count }, () => ({
    token: (prefix + randomBytes(32).toString("hex")).slice(0, 64),
    platform: "ios",
    topics,
  }));
  const ids: DeviceId[] = [];
  for await (const written of seedDevices(client.db(name), project.id, devices)) ids.push(...written);
  return ids.flatMap((id, index) => {
    const token = devices[index]?.token;
    return token === undefined ? [] : [{ id, token }];
  });
}
