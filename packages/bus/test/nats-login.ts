import { type Bus, connectBus } from "@herald/bus";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import type { BusTest } from "./fixture.ts";

/** As whom a part connects through the bus. */
export const natsLogin = (t: BusTest, name: BusUserName) => {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = t.broker.loginOf(name);
  return { ...(user && { user }), ...(password && { password }) };
};

/** The same for NATS's own client. */
export const nativeLogin = (t: BusTest, name: BusUserName) => {
  const { user, password } = natsLogin(t, name);
  return { ...(user && { user, pass: password ?? "" }) };
};

/** A connection as one of Herald's own users, with what that may do. Who asks for it closes it. */
export const connectAs = (t: BusTest, name: BusUserName): Promise<Bus> => {
  const { inboxPrefix } = busUsers[name];
  return connectBus({ url: t.broker.url, name, ...natsLogin(t, name), inboxPrefix, log: t.log });
};
