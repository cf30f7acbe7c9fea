import { startReplicas } from "../harness/beside.ts";
import type { System } from "../harness/system.ts";
import type { Fixture } from "./row.ts";

/** A system with a second replica of each service. `second`: the URL of the second gateway. */
export const replicated: Fixture<{ readonly system: System; readonly second: string }> = {
  open: async ({ shared, defer }) => {
    const system = await shared();
    return { system, second: await startReplicas(system, defer) };
  },
};
