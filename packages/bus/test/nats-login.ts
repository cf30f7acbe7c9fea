import { type Bus, connectBus } from "@herald/bus";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import type { BusTest } from "./fixture.ts";

/** The login of a user, in the bus's options. */
export const natsLogin = (t: BusTest, name: BusUserName) => {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = t.broker.loginOf(name);
  return { ...(user && { user }), ...(password && { password }) };
};

/** The login of a user, in the options of NATS's own client. */
export const nativeLogin = (t: BusTest, name: BusUserName) => {
  const { user, password } = natsLogin(t, name);
  return { ...(user && { user, pass: password ?? "" }) };
};

/** Connects as one of Herald's own users, with that user's permissions. The caller closes the connection. */
export const connectAs = (t: BusTest, name: BusUserName): Promise<Bus> => {
  const { inboxPrefix } = busUsers[name];
  return connectBus({ url: t.broker.url, name, ...natsLogin(t, name), inboxPrefix, log: t.log });
};
