import { type BusUserName, busUsers, passwordVariables, renderNatsAccounts } from "@herald/bus/permissions";
import { durables } from "@herald/contracts";

/** What a consumer of open events reads, and as whom: on a broker of our own a user that can do nothing else. */
export type AnalyticsAccess = {
  user?: string;
  password?: string;
  stream: string;
  durable: string;
  inboxPrefix: string;
};

export type NatsPasswords = Readonly<Record<BusUserName, string>>;

export type NatsLogin = { user?: string; password?: string };

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

/** Who each part is on the bus. */
export type NatsLogins = { of: (name: BusUserName) => NatsLogin; analytics: AnalyticsAccess };

/** On a broker of our own. */
export function ownLogins(passwords: NatsPasswords): NatsLogins {
  const of = (name: BusUserName) => ({ user: busUsers[name].user, password: passwords[name] });
  return { of, analytics: analyticsAs(of("opens"), busUsers.opens.inboxPrefix) };
}

/**
 * On a broker that was given by its URL, whose users are not ours to make: a part is its own user where the environment has
 * a password for it, and what HERALD_NATS_USER says otherwise.
 */
export function givenLogins(env: NodeJS.ProcessEnv): NatsLogins {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = env;
  const common = { ...(user && { user }), ...(password && { password }) };
  const own = (name: BusUserName) => env[passwordVariables[name]];
  const of = (name: BusUserName) => {
    const of = own(name);
    return of ? { user: busUsers[name].user, password: of } : common;
  };
  return { of, analytics: analyticsAs(of("opens"), own("opens") ? busUsers.opens.inboxPrefix : "_INBOX") };
}

export const newPasswords = (make: () => string): NatsPasswords => forEach(make);

/** As the compose file's broker gets them. */
export const passwordEnvironment = (passwords: NatsPasswords): Record<string, string> =>
  Object.fromEntries(names.map((name) => [passwordVariables[name], passwords[name]]));

/** The accounts and users of a local broker, as nats-server's configuration names them; those of consumers are in a file beside it. */
export const natsAccounts = (passwords: NatsPasswords, consumersFile?: string): string =>
  renderNatsAccounts({ credentials: forEach((name) => ({ password: passwords[name] })), consumersFile });
