import type { BusUserName } from "@herald/contracts";
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
