import { consumerPermissions, type DurableName, durables } from "@herald/contracts";

/** What a consumer of open events reads, and as whom: on a broker of our own a user that can do nothing else. */
export type AnalyticsAccess = {
  user?: string;
  password?: string;
  stream: string;
  durable: string;
  inboxPrefix: string;
};

const durable: DurableName = "consumers-opens";
const { stream } = durables[durable];

/** On a broker of our own. */
export function analyticsUser(password: string) {
  return { user: "analytics", password, stream, durable, inboxPrefix: "_INBOX_analytics" } satisfies AnalyticsAccess;
}

/** On a broker that was given by its URL, whose users are not ours to make. */
export function analyticsAs(user: { user?: string; password?: string }): AnalyticsAccess {
  return { ...user, stream, durable, inboxPrefix: "_INBOX" };
}

/** The users of the local broker, as nats-server's configuration names them. */
export function natsUsers(heraldPassword: string, analytics: ReturnType<typeof analyticsUser>): string {
  const users = [
    { user: "herald", password: heraldPassword },
    {
      user: analytics.user,
      password: analytics.password,
      permissions: consumerPermissions(durable, analytics.inboxPrefix),
    },
  ];
  return `authorization: ${JSON.stringify({ users }, null, 2)}`;
}
