import { type ApnsOptions, startApns } from "./apns/server.ts";
import { createIdentity, keepIdentity } from "./certificates.ts";
import { startControl } from "./control/server.ts";
import { type FcmOptions, startFcm } from "./fcm/server.ts";
import type { SimulatedProvider } from "./push-log.ts";
import { createPushLog, type PushFilter } from "./push-log.ts";
import { createScript } from "./script/script.ts";
import { startWebPush, type WebPushOptions } from "./webpush/server.ts";

export interface SimulatorsOptions {
  /** The gateway's origin, to which the page of pushes sends opens. */
  readonly gateway?: string | undefined;
  /** 0, the default, takes a free port. */
  readonly ports?: Readonly<Partial<Record<SimulatedProvider | "control", number>>>;
  /** The address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** The name that clients use, in the URLs and in the certificate. Default: `host`. */
  readonly publicHost?: string;
  /** `count` keeps numbers only, so that a benchmark measures the sender. Default `all`. */
  readonly record?: "all" | "count";
  /** The minimum number of pushes in memory; older ones are dropped and counted. Default 200,000 (about 300 MB). */
  readonly keep?: number;
  /** The file for the certificate, so that a restart uses the same authority. Default: a new one at each start. */
  readonly identityFile?: string | undefined;
  /** Milliseconds since 1970, for the limits of a script. Default: the system's clock. */
  readonly now?: () => number;
  readonly apns?: ApnsOptions;
  readonly fcm?: FcmOptions;
  readonly webpush?: WebPushOptions;
}

export type Simulators = Awaited<ReturnType<typeof startSimulators>>;

/** Starts all simulators and their control server. If one cannot start, stops the others. */
export async function startSimulators(options: SimulatorsOptions = {}) {
  const { ports = {}, host = "127.0.0.1", publicHost = host, record = "all", keep = 200_000, gateway } = options;
  const identity = options.identityFile
    ? await keepIdentity(options.identityFile, publicHost)
    : await createIdentity(publicHost);
  const log = createPushLog({ record, keep });
  const script = createScript(options.now);
  const deps = { identity, script, log, host, publicHost };
  const started: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    await Promise.all(started.splice(0).map((each) => each.stop()));
  };
  const starting = async <Server extends { stop(): Promise<void> }>(server: Promise<Server>): Promise<Server> => {
    started.push(await server);
    return server;
  };

  try {
    const apns = await starting(startApns(deps, ports.apns ?? 0, options.apns ?? {}));
    /** Its `/token` is Google's token endpoint. */
    const fcm = await starting(startFcm(deps, ports.fcm ?? 0, options.fcm ?? {}, apns.instances));
    const webpush = await starting(startWebPush(deps, ports.webpush ?? 0, options.webpush ?? {}));
    const control = await starting(startControl(deps, ports.control ?? 0, { gateway, apns, fcm, webpush }));
    return {
      apns,
      fcm,
      webpush,
      control,
      /** PEM of the authority that signed the simulators' certificates. */
      ca: identity.ca,
      /** Replaces the script: an array of rules or `{ rules, seed? }`. @throws InvalidScript with every problem in `errors` */
      script: (rules: unknown) => script.replace(rules),
      /** Oldest first. */
      pushes: (filter?: PushFilter) => [...log.pushes(filter)],
      stats: log.stats,
      /** Deletes the pushes and the script. */
      clear() {
        log.clear();
        script.replace([]);
      },
      instances: apns.instances,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
