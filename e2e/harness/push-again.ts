import { once } from "node:events";
import { connect } from "node:http2";
import type { Push } from "@herald/simulators";
import { expectStatus, request } from "@herald/testing";
import type { SimulatorControl } from "./simulators.ts";

/** An unsigned token, which a simulator without keys accepts. */
function providerToken(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "ES256", kid: "AGAIN00001" })}.${part({ iss: "AGAIN00001", iat: Math.floor(Date.now() / 1_000) })}.AA`;
}

/** Sends a push to the simulator again, like a sender that lost its state. */
export async function pushAgain(simulators: SimulatorControl, push: Push): Promise<void> {
  const { apns, ca } = expectStatus(await request(simulators.url, "GET /info"), 200).body;
  const session = connect(apns, { ca });
  try {
    const stream = session.request({
      ...push.headers,
      ":method": "POST",
      ":path": `/3/device/${push.token}`,
      authorization: `bearer ${providerToken()}`,
    });
    stream.end(JSON.stringify(push.payload));
    const [headers] = await once(stream, "response");
    if (headers[":status"] !== 200) throw new Error(`the simulator answered ${headers[":status"]}`);
    stream.resume();
  } finally {
    session.close();
  }
}
