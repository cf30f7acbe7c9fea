export { debianSite, unpackDebianPackages, whyNoDebian } from "./fetch/debian.ts";
export { cacheFolder, provision } from "./fetch/provision.ts";
export { findGo, goInstall, installTimeoutMs } from "./fetch/toolchains.ts";
export { freePort } from "./processes/free-port.ts";
export { type CommandResult, findBinary, runCommand } from "./processes/run-command.ts";
export { isAlive, type RunningProcess, startProcess } from "./processes/start-process.ts";
export { removeAtExit } from "./processes/watchdog.ts";
export { composeStarter, type DockerStarter, dockerEngine, removeComposeData } from "./servers/docker.ts";
export { resolveMongo, startMongo } from "./servers/mongo.ts";
export { resolveNats, startNats, startNatsServer } from "./servers/nats.ts";
export {
  type AnalyticsAccess,
  consumersFile,
  givenLogins,
  keepAccounts,
  natsAccounts,
  newPasswords,
  ownLogins,
  passwordEnvironment,
} from "./servers/nats-users.ts";
export type { RunningServer } from "./servers/resolve-program.ts";
export { images, versions } from "./versions.ts";
