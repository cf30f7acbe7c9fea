import { startApns } from "./apns/server.ts";
import { createIdentity, keepIdentity } from "./certificates.ts";
import { startControl } from "./control/server.ts";
import { startFcm } from "./fcm/server.ts";
import { createPushLog } from "./push-log.ts";
import { createScript } from "./script/script.ts";
import type { PushFilter, Simulators, SimulatorsOptions } from "./types.ts";
import { startWebPush } from "./webpush/server.ts";

/** Starts APNs, FCM, Web Push and their control server, each on a port of its own. If one cannot start, stops the others and throws. */
export async function startSimulators(options: SimulatorsOptions = {}): Promise<Simulators> {
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
    const fcm = await starting(startFcm(deps, ports.fcm ?? 0, options.fcm ?? {}, apns.instances));
    const webpush = await starting(startWebPush(deps, ports.webpush ?? 0, options.webpush ?? {}));
    const control = await starting(startControl(deps, ports.control ?? 0, { gateway, apns, fcm, webpush }));
    return {
      apns,
      fcm,
      webpush,
      control,
      ca: identity.ca,
      script: (rules: unknown) => script.replace(rules),
      pushes: (filter?: PushFilter) => [...log.pushes(filter)],
      stats: log.stats,
      clear() {
        log.clear();
        script.replace([]);
      },
      instances: apns.instances,
      channels: apns.channels,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
