import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type BusUserName, busUsers, passwordVariables, renderNatsAccounts } from "@herald/bus/permissions";
import { durables } from "@herald/contracts";

/** The durable and login of a consumer of open events. On a broker started here, the user can do nothing else. */
export type AnalyticsAccess = {
  user?: string;
  password?: string;
  stream: string;
  durable: string;
  inboxPrefix: string;
};

export type NatsPasswords = Readonly<Record<BusUserName, string>>;

type NatsLogin = { user?: string; password?: string };

const names = Object.keys(busUsers) as BusUserName[];

const forEach = <Value>(value: (name: BusUserName) => Value) =>
  Object.fromEntries(names.map((name) => [name, value(name)])) as Record<BusUserName, Value>;

const durable = "consumers-opens";

const analyticsAs = (login: NatsLogin, inboxPrefix: string): AnalyticsAccess => ({
  ...login,
  stream: durables[durable].stream,
  durable,
  inboxPrefix,
});

/** The login of each part on the bus. */
type NatsLogins = { of: (name: BusUserName) => NatsLogin; analytics: AnalyticsAccess };

/** The logins on a broker started here. */
export function ownLogins(passwords: NatsPasswords): NatsLogins {
  const of = (name: BusUserName) => ({ user: busUsers[name].user, password: passwords[name] });
  return { of, analytics: analyticsAs(of("opens"), busUsers.opens.inboxPrefix) };
}

/**
 * The logins on a broker given by HERALD_NATS_URL, whose users Herald cannot create. A part logs in as its own user if the environment
 * has that user's password, otherwise as HERALD_NATS_USER.
 */
export function givenLogins(env: NodeJS.ProcessEnv): NatsLogins {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = env;
  const common = { ...(user && { user }), ...(password && { password }) };
  const own = (name: BusUserName) => env[passwordVariables[name]];
  const of = (name: BusUserName) => {
    const password = own(name);
    return password ? { user: busUsers[name].user, password } : common;
  };
  return { of, analytics: analyticsAs(of("opens"), own("opens") ? busUsers.opens.inboxPrefix : "_INBOX") };
}

export const newPasswords = (make: () => string): NatsPasswords => forEach(make);

/** The passwords as environment variables of the compose file's broker. */
export const passwordEnvironment = (passwords: NatsPasswords): Record<string, string> =>
  Object.fromEntries(names.map((name) => [passwordVariables[name], passwords[name]]));

/** The accounts and users of a local broker, in nats-server's configuration syntax. Consumers' accounts are in a file beside it. */
export const natsAccounts = (passwords: NatsPasswords, consumersFile?: string): string =>
  renderNatsAccounts({ credentials: forEach((name) => ({ password: passwords[name] })), consumersFile });

/** The accounts of consumers that were added to the local broker. Like their durables, they survive a restart. */
export const consumersFile = (dataDir: string): string => join(dataDir, "nats", "consumers.conf");

/** Creates the file of consumers' accounts if it is missing. Returns the accounts of the broker's configuration. */
export async function keepAccounts(dataDir: string, passwords: NatsPasswords): Promise<string> {
  const folder = join(dataDir, "nats");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await appendFile(consumersFile(dataDir), "", { mode: 0o600 });
  return natsAccounts(passwords, "consumers.conf");
}
