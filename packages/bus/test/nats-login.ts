import { type Bus, closeBus, connectBus } from "@herald/bus";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { startBroker } from "@herald/testing";
import type { BusTest } from "./fixture.ts";

type Login = Pick<BusTest, "broker" | "log">;

/** The login of a user, in the bus's options. */
export const natsLogin = (t: Pick<BusTest, "broker">, name: BusUserName) => {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = t.broker.loginOf(name);
  return { ...(user && { user }), ...(password && { password }) };
};

/** The login of a user, in the options of NATS's own client. */
export const nativeLogin = (t: BusTest, name: BusUserName) => {
  const { user, password } = natsLogin(t, name);
  return { ...(user && { user, pass: password ?? "" }) };
};

/** Connects as one of Herald's own users, with that user's permissions. The caller closes the connection. */
export const connectAs = (t: Login, name: BusUserName): Promise<Bus> => {
  const { inboxPrefix } = busUsers[name];
  return connectBus({ url: t.broker.url, name, ...natsLogin(t, name), inboxPrefix, log: t.log });
};

/**
 * Calls `work` as a user of a broker that has no stream. It is a new one, because a broker that has just deleted a stream may fail on its
 * old files when it recreates the stream.
 */
export const onEmptyBroker = async (
  name: BusUserName,
  log: BusTest["log"],
  work: (bus: Bus) => Promise<void>,
): Promise<void> => {
  const broker = await startBroker();
  const bus = await connectAs({ broker, log }, name);
  try {
    await work(bus);
  } finally {
    await closeBus(bus);
    await broker.stop();
  }
};
