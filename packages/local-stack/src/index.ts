export { freePort } from "./processes/free-port.ts";
export { type CommandResult, findBinary, runCommand } from "./processes/run-command.ts";
export { type RunningProcess, startProcess } from "./processes/start-process.ts";
export { removeAtExit } from "./processes/watchdog.ts";
export { debianSite, unpackDebianPackages, whyNoDebian } from "./provision/debian.ts";
export { cacheFolder, provision } from "./provision/provision.ts";
export { findGo, goInstall, installTimeoutMs } from "./provision/toolchains.ts";
export type { DockerStarter } from "./servers/docker.ts";
export { resolveMongo, startMongo } from "./servers/mongo.ts";
export { resolveNats, startNats, startNatsServer } from "./servers/nats.ts";
export {
  type AnalyticsAccess,
  natsAccounts,
  newPasswords,
  ownLogins,
  passwordEnvironment,
} from "./servers/nats-users.ts";
export type { RunningServer } from "./servers/resolve-program.ts";
export { freePortsEnvironment } from "./start/ports.ts";
export { type RunningHerald, type ServiceStart, startHerald } from "./start/start-herald.ts";
export { images, versions } from "./versions.ts";
