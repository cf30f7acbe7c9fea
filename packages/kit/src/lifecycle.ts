import type { Logger } from "pino";
import { withTimeout } from "./request-context.ts";

/** Stops a service in steps. A step that fails is logged, and the next one runs. After the deadline the remaining steps do not run. */
export const createLifecycle = ({ log, deadlineMs }: { log: Logger; deadlineMs: number }) => {
  const steps: { name: string; step: () => void | Promise<void> }[] = [];
  let running: Promise<boolean> | undefined;

  const run = async (reason: string): Promise<boolean> => {
    log.info({ reason }, "stopping");
    let clean = true;
    let at = "";
    const all = async () => {
      for (const { name, step } of steps) {
        at = name;
        try {
          await step();
        } catch (error) {
          clean = false;
          log.error({ err: error, step: name }, "a step of the stop failed");
        }
      }
    };
    if (!(await withTimeout(deadlineMs, all()))) {
      log.error({ step: at, deadlineMs }, "the stop took too long and was given up");
      return false;
    }
    log.info("stopped");
    return clean;
  };

  return {
    /** Adds a step to the stop. Steps run one after another, in the order of their addition. */
    onStop: (name: string, step: () => void | Promise<void>) => {
      steps.push({ name, step });
    },
    /** Runs the steps once; later calls wait for the same run. True if every step succeeded before the deadline. */
    stop: (reason: string) => {
      running ??= run(reason);
      return running;
    },
  };
};
