import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApnsClient, connectApns, deviceToken } from "../../test/apns-client.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Phone, Simulators } from "../types.ts";

let simulators: Simulators;
let client: ApnsClient;

beforeAll(async () => {
  simulators = await startSimulators();
  client = await connectApns(simulators);
});
afterAll(async () => {
  client.close();
  await simulators.stop();
});

const post = async (body: unknown) => {
  const response = await fetch(`${simulators.control.url}/apns/phones`, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Phone & { errors: string[] } };
};
const app = "org.example.app";
const push = (token: string | undefined, topic: string, pushType: string) =>
  client.send({ token: token ?? "", headers: { "apns-topic": topic, "apns-push-type": pushType } });

describe("POST /apns/phones", () => {
  it("gives each app a token for each push type that its iOS has", async () => {
    const typesOn = async (ios: string, controls?: string[]) =>
      Object.keys((await post({ app, ios, controls })).body.tokens);
    expect(await typesOn("14.8")).toEqual(["alert", "voip", "complication", "fileprovider"]);
    expect(await typesOn("18.1", ["garage", "gate"])).toEqual(
      "alert voip complication fileprovider location pushtotalk controls/garage controls/gate".split(" "),
    );
    expect((await post({ app })).body.tokens).toHaveProperty("widgets");
  });

  it("refuses a wrong phone with every problem", async () => {
    const { status, body } = await post({ app: "not an app", ios: "new", watch: 1 });
    expect(status).toBe(422);
    expect(body.errors.join("\n")).toMatch(/app: [\s\S]*ios: [\s\S]*watch/);
  });
});

describe("a token of a phone", () => {
  it("is good for its own topic, in either case of its letters", async () => {
    const { tokens } = (await post({ app, controls: ["gate"] })).body;
    expect(await push(tokens.alert, app, "alert")).toMatchObject({ status: 200 });
    expect(await push(tokens.voip?.toUpperCase(), `${app}.voip`, "voip")).toMatchObject({ status: 200 });
    expect(await push(tokens["controls/gate"], `${app}.push-type.controls`, "controls")).toMatchObject({ status: 200 });
  });

  it("is not for another push type, nor for another app", async () => {
    const { tokens } = (await post({ app })).body;
    for (const [token, topic, type] of [
      [tokens.alert, `${app}.voip`, "voip"],
      [tokens.voip, app, "alert"],
      [tokens.voip?.toUpperCase(), app, "alert"],
      [tokens.alert, "org.example.other", "alert"],
    ] as const) {
      const { status, body } = await push(token, topic, type);
      expect({ status, body }).toEqual({ status: 400, body: '{"reason":"DeviceTokenNotForTopic"}' });
    }
    expect(simulators.pushes().at(-1)?.problem).toBe(`apns-topic: the token is for ${app}`);
  });

  it("differs from a token that no phone gave, which is good for any topic", async () => {
    expect(await push(deviceToken(7), "org.example.other", "alert")).toMatchObject({ status: 200 });
  });
});
