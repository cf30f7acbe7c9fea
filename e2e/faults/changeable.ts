import { type ServiceName, type System, serviceNames } from "../harness/system.ts";
import type { Fixture } from "./row.ts";

type Variables = Readonly<Record<string, string>>;

/** A system whose services get other variables between rows, which costs less than a start of the whole. */
export const changeable: Fixture<{ readonly withVariables: (variables: Variables) => Promise<System> }> = {
  open: async ({ start }) => {
    let current: Variables = {};
    let system: System | undefined;
    return {
      /** The system, after every service has been started with these variables beside the usual ones. */
      withVariables: async (variables) => {
        current = variables;
        const startedFrom = (_: ServiceName, usual: { root: string; env: NodeJS.ProcessEnv }) => ({
          ...usual,
          env: { ...usual.env, ...current },
        });
        if (system === undefined) {
          system = await start({ startedFrom });
          return system;
        }
        const { services } = system;
        await Promise.all(serviceNames.map((name) => services[name].kill("SIGTERM")));
        await system.ready();
        return system;
      },
    };
  },
};
