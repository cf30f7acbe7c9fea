import type { RegisterDevice } from "@herald/contracts";
import { expectStatus } from "@herald/testing";
import type { Project } from "./project.ts";

const inARequest = 500;

/** Registers devices as an app's backend does, hundreds in a request. */
export async function registerAll(
  { call }: Pick<Project, "call">,
  devices: readonly Partial<RegisterDevice["device"]>[],
): Promise<void> {
  for (let from = 0; from < devices.length; from += inARequest)
    expectStatus(await call("PUT /devices", { body: { devices: devices.slice(from, from + inARequest) } }), 200);
}
