import type { Logger } from "pino";

export type Lifecycle = {
  /** Adds a step to the stop. Steps run one after the other, in the order in which they were added. */
  readonly onStop: (name: string, step: () => void | Promise<void>) => void;
  /** Runs the steps, once; later calls wait for the same run. True when all went well within the deadline. */
  readonly stop: (reason: string) => Promise<boolean>;
};

/**
 * The order in which a service stops. A step that fails is logged and the next one runs; when the deadline passes, the
 * rest is given up.
 */
export const createLifecycle = ({ log, deadlineMs }: { log: Logger; deadlineMs: number }): Lifecycle => {
  const steps: { name: string; step: () => void | Promise<void> }[] = [];
  let running: Promise<boolean> | undefined;

  const run = async (reason: string): Promise<boolean> => {
    log.info({ reason }, "stopping");
    let clean = true;
    let at = "";
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, deadlineMs, "late");
    });
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
    const result = await Promise.race([all(), deadline]);
    clearTimeout(timer);
    if (result === "late") {
      log.error({ step: at, deadlineMs }, "the stop took too long and was given up");
      return false;
    }
    log.info("stopped");
    return clean;
  };

  return {
    onStop: (name, step) => {
      steps.push({ name, step });
    },
    stop: (reason) => {
      running ??= run(reason);
      return running;
    },
  };
};
