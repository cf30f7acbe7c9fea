import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@herald/testing";
import type { Project } from "../harness/project.ts";

/** Sends to a device, one after another, until it is stopped. Attacks on others must not disturb these sends. */
export function startOrdinary(project: Project, deviceId: string) {
  const ids: string[] = [];
  const failed: string[] = [];
  let running = true;
  const sending = (async () => {
    while (running) {
      // A busy machine sometimes answers 503, and callers retry.
      const send = () => project.send({ title: "Ordinary", targets: [deviceId] });
      await eventually(send, { timeoutMs: 10_000 }).then(
        ({ id }) => ids.push(id),
        (error: Error) => failed.push(error.message),
      );
      await delay(100); // a load that a busy machine can handle besides the attack
    }
  })();
  return {
    /** Stops sending. Resolves to the numbers of sends and pushes, and the errors. */
    stop: async () => {
      running = false;
      await sending;
      for (const id of ids) {
        const { counts } = await project.final(id);
        if (counts.accepted !== 1) failed.push(`${id}: ${JSON.stringify(counts)}`);
      }
      return { done: ids.length, failed };
    },
  };
}
