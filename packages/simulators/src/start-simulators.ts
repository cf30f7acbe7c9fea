import { type ApnsOptions, type ApnsSimulator, startApns } from "./apns/server.ts";
import { createIdentity, keepIdentity } from "./certificates.ts";
import { startControl } from "./control/server.ts";
import { type FcmOptions, type FcmSimulator, startFcm } from "./fcm/server.ts";
import { createPushLog, type ProviderStats, type Push, type PushFilter } from "./push-log.ts";
import { createScript } from "./script/script.ts";
import type { Provider } from "./simulator.ts";
import { startWebPush, type WebPushOptions, type WebPushSimulator } from "./webpush/server.ts";

export interface SimulatorsOptions {
  /** Where the page of pushes sends opens: the gateway's origin. */
  readonly gateway?: string | undefined;
  /** 0, the default, takes a free one. */
  readonly ports?: {
    readonly apns?: number;
    readonly fcm?: number;
    readonly webpush?: number;
    readonly control?: number;
  };
  /** The address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** The name that clients use, in the URLs and in the certificate. Default: `host`. */
  readonly publicHost?: string;
  /** `count` keeps numbers only, so that a benchmark measures the sender. Default `all`. */
  readonly record?: "all" | "count";
  /** How many pushes are kept at least; older ones are dropped and counted. Default 200,000 (about 300 MB). */
  readonly keep?: number;
  /** Where the certificate is kept, so that a restart shows the same authority. Default: a new one each time. */
  readonly identityFile?: string;
  /** One line when the simulators are up. */
  readonly log?: (line: string) => void;
  readonly apns?: ApnsOptions;
  readonly fcm?: FcmOptions;
  readonly webpush?: WebPushOptions;
}

export interface Simulators {
  readonly apns: ApnsSimulator;
  /** Google's token endpoint is its `/token`. */
  readonly fcm: FcmSimulator;
  readonly webpush: WebPushSimulator;
  readonly control: { readonly url: string };
  /** PEM of the authority behind the providers' certificates. */
  readonly ca: string;
  /** Replaces the script: an array of rules or `{ rules, seed? }`. @throws InvalidScript with every problem in `errors` */
  script(rules: unknown): void;
  /** Oldest first. */
  pushes(filter?: PushFilter): Push[];
  stats(): Partial<Record<Provider, ProviderStats>>;
  /** Forgets the pushes and the script. */
  clear(): void;
  stop(): Promise<void>;
}

/** Starts every simulator and their control server; when one cannot start, none stays. */
export async function startSimulators(options: SimulatorsOptions = {}): Promise<Simulators> {
  const { ports = {}, host = "127.0.0.1", record = "all", keep = 200_000 } = options;
  const publicHost = options.publicHost ?? host;
  const identity = options.identityFile
    ? await keepIdentity(options.identityFile, publicHost)
    : await createIdentity(publicHost);
  const log = createPushLog({ record, keep });
  const script = createScript();
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    await Promise.all(stops.splice(0).map((each) => each()));
  };

  try {
    const common = { identity, script, log, host, publicHost };
    const apns = await startApns({ ...common, port: ports.apns ?? 0, options: options.apns ?? {} });
    stops.push(apns.stop);
    const fcm = await startFcm({ ...common, port: ports.fcm ?? 0, options: options.fcm ?? {} });
    stops.push(fcm.stop);
    const webpush = await startWebPush({ ...common, port: ports.webpush ?? 0, options: options.webpush ?? {} });
    stops.push(webpush.stop);
    const control: { url: string; stop(): Promise<void> } = await startControl({
      log,
      script,
      host,
      publicHost,
      port: ports.control ?? 0,
      ca: identity.ca,
      gateway: options.gateway,
      apns,
      fcm,
      webpush,
    });
    stops.push(control.stop);
    options.log?.(`simulators: APNs ${apns.url}, FCM ${fcm.url}, Web Push ${webpush.url}, control ${control.url}`);
    return {
      apns,
      fcm,
      webpush,
      control: { url: control.url },
      ca: identity.ca,
      script: (rules) => script.replace(rules),
      pushes: (filter) => [...log.pushes(filter)],
      stats: log.stats,
      clear() {
        log.clear();
        script.replace([]);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
