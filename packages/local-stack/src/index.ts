export { bundle, bundleOf } from "./bundle/bundle.ts";
export { bundleWebKit } from "./bundle/web-kit.ts";
export type { Attempt, Resolution, Source, Step } from "./chain.ts";
export type { DockerService, DockerStarter } from "./docker.ts";
export { resolveMongo } from "./mongo/resolve-mongo.ts";
export { type MongoOptions, startMongo } from "./mongo/start-mongo.ts";
export { resolveNats } from "./nats/resolve-nats.ts";
export { type NatsOptions, startNats, startNatsServer } from "./nats/start-nats.ts";
export { findBinary } from "./processes/find-binary.ts";
export { freePort } from "./processes/free-port.ts";
export { type CommandResult, runCommand } from "./processes/run-command.ts";
export { type RunningProcess, startProcess } from "./processes/start-process.ts";
export { removeAtExit } from "./processes/watchdog.ts";
export { cacheFolder } from "./provision/cache-folder.ts";
export { type Chromium, findChromium } from "./provision/chromium.ts";
export { debianSite, unpackDebianPackages } from "./provision/debian.ts";
export { goProgram } from "./provision/go-program.ts";
export { pipInstall } from "./provision/pip-install.ts";
export { provision } from "./provision/provision.ts";
export type { RunningServer, StackOptions } from "./stack-options.ts";
export {
  type AnalyticsAccess,
  natsAccounts,
  newPasswords,
  ownLogins,
  passwordEnvironment,
} from "./start/nats-users.ts";
export { freePortsEnvironment } from "./start/ports.ts";
export { type RunningHerald, type ServiceStart, startHerald } from "./start/start-herald.ts";
export { images } from "./versions.ts";
