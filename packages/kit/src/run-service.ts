import { ConfigError } from "./config/read-config.ts";
import { createLogger } from "./logger.ts";
import { scrub } from "./redact.ts";
import { mapStackTraces } from "./stack-traces.ts";

/** The result of a composition root. `stop` ends within its own deadline; false means that a step failed. */
export type App = {
  readonly start: () => Promise<unknown>;
  readonly stop: () => Promise<unknown>;
};

/** sysexits.h: the configuration is wrong, so starting again will not help. */
const exitConfig = 78;
const exitFailed = 1;

/**
 * The whole of a `main.ts`: creates the app, starts it, stops it on SIGTERM or SIGINT. A second signal ends the process at once. Exit
 * codes: 0 stopped in order, 78 wrong configuration, 1 anything else.
 */
export const runService = async (name: string, createApp: () => App | Promise<App>): Promise<void> => {
  const [, program] = process.argv;
  if (program !== undefined) mapStackTraces(program);
  const log = createLogger({ service: name, level: "info" });
  const crash = (error: unknown) => {
    log.fatal({ err: error }, "crashed");
    process.exit(exitFailed);
  };
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);

  let app: App | undefined;
  let signals = 0;
  const onSignal = async (signal: NodeJS.Signals) => {
    signals++;
    if (signals > 1 || app === undefined) process.exit(exitFailed);
    try {
      process.exit((await app.stop()) === false ? exitFailed : 0);
    } catch (error) {
      log.error({ err: error, signal }, "the stop failed");
      process.exit(exitFailed);
    }
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);

  try {
    app = await createApp();
    await app.start();
  } catch (error) {
    if (error instanceof ConfigError) {
      process.stderr.write(`${name}: ${error.message}\n`);
      process.exit(exitConfig);
    }
    log.fatal({ err: error }, `did not start: ${scrub(error instanceof Error ? error.message : String(error))}`);
    process.exit(exitFailed);
  }
};
