import { consumerPermissions, type DurableName, durables } from "@herald/contracts";

/** Reads open events and can do nothing else: what an analytics consumer gets. */
export type AnalyticsUser = { user: string; password: string; stream: string; durable: string; inboxPrefix: string };

const durable: DurableName = "consumers-opens";

export function analyticsUser(password: string): AnalyticsUser {
  return { user: "analytics", password, stream: durables[durable].stream, durable, inboxPrefix: "_INBOX_analytics" };
}

/** The users of the local broker, as nats-server's configuration names them. */
export function natsUsers(heraldPassword: string, analytics: AnalyticsUser): string {
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
