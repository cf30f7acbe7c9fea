import { sendRequest } from "@herald/bus";
import { deliveryRequests, type ProjectId, type Provider, providerRequests } from "@herald/contracts";
import { type Simulators, startSimulators } from "@herald/simulators";
import { type ConnectProxy, eventually, startConnectProxy } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther, serviceAccount } from "./other-providers-fixture.ts";

/** Push services that only the proxy can reach: their name means nothing to this machine. */
let services: Simulators;
let proxy: ConnectProxy;
let dispatch: DispatchTest;
/** What the proxy answers in place of a tunnel. */
let answer: string | undefined;

beforeAll(async () => {
  services = await startSimulators({ publicHost: "push.example" });
  proxy = await startConnectProxy({ answer: () => answer, portOf: (authority) => Number(authority.split(":")[1]) });
  dispatch = await startDispatchTest({
    HTTPS_PROXY: proxy.url.replace("//", "//herald:pass%40word@"),
    HERALD_DISPATCH_WEBPUSH_ANY_HOST: "true",
  });
});
afterAll(async () => {
  await dispatch?.stop();
  await proxy?.stop();
  await services?.stop();
});
beforeEach(() => {
  services.clear();
  answer = undefined;
});

const putApns = (projectId: ProjectId) =>
  dispatch.putProvider(projectId, { endpoint: services.apns.url, ca: services.ca });
const view = (projectId: ProjectId, provider: Provider = "apns") =>
  sendRequest(dispatch.bus, providerRequests.get, { projectId, provider });
const testPush = (projectId: ProjectId) =>
  sendRequest(dispatch.bus, providerRequests.test, { projectId, provider: "apns", push: { token: device().token } });

test("every provider is reached through the proxy alone, by its own name and certificate", async () => {
  const projectId = await dispatch.project();
  await putApns(projectId);
  const at = ({ url }: { url: string }) => ({ endpoint: url, ca: services.ca });
  await putOther(dispatch, projectId, "fcm", { service_account: serviceAccount, ...at(services.fcm) });
  const subject = "mailto:ops@example.com";
  const web = await putOther(dispatch, projectId, "webpush", { subject, ...at(services.webpush) });
  const { endpoint, keys } = services.webpush.subscribe({ applicationServerKey: String(web.settings.public_key) });
  const browser = device("", { token: endpoint, keys });

  for (const [platform, batch] of [
    ["ios", devices(120)],
    ["android", [device("", { token: "token-of-one" })]],
    ["web", [browser]],
  ] as const) {
    const id = await dispatch.send(projectId);
    await dispatch.partition(projectId, id, [[...batch]], { platform });
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: batch.length } });
  }
  const basic = `Basic ${Buffer.from("herald:pass@word").toString("base64")}`;
  expect(new Set(proxy.asked.map(({ authority }) => authority))).toEqual(
    new Set([services.apns, services.fcm, services.webpush].map(({ url }) => new URL(url).host)),
  );
  expect(new Set(proxy.asked.map(({ authorization }) => authorization))).toEqual(new Set([basic]));
});

test.each([
  ["HTTP/1.1 403 Filtered\r\n\r\n", "proxy-refused", "the proxy refuses connections to push.example:[0-9]+ (403)"],
  ["HTTP/1.1 407 Login\r\n\r\n", "proxy-refused", "the proxy refuses Herald's user and password (407)"],
  ["HTTP/1.1 502 Bad\r\n\r\n", "proxy-failed", "the proxy gives no connection to push.example:[0-9]+ (502)"],
  ["HTTP/1.1 410 Gone\r\n\r\n{}", "proxy-refused", "the proxy refuses connections to push.example:[0-9]+ (410)"],
  ["hello\r\n", "proxy-unreachable", "the proxy does not answer as a proxy"],
  ["", "proxy-unreachable", "the proxy does not answer within 3 s"],
])(
  "what the proxy answers (%j) is never taken for the provider's: pushes wait, and arrive later",
  async (says, reason, words) => {
    const projectId = await dispatch.project();
    await putApns(projectId);
    answer = says;
    const id = await dispatch.send(projectId);
    const batch = devices(3);
    await dispatch.partition(projectId, id, [batch]);
    const detail = expect.stringMatching(words.replaceAll(/[()]/g, "\\$&"));
    await eventually(
      async () =>
        expect(await view(projectId)).toMatchObject({
          status: "active",
          problems: [{ reason, host: new URL(services.apns.url).host, detail }],
        }),
      { timeoutMs: 30_000 },
    );
    const { attempts } = await sendRequest(dispatch.bus, deliveryRequests.trace, {
      projectId,
      notificationId: id,
      deviceId: batch[0]?.id ?? ("" as never),
    });
    expect(attempts.at(-1)).toMatchObject({ provider_reason: detail });
    expect(await testPush(projectId)).toMatchObject({ result: "not-reached", detail });
    expect(JSON.stringify([await view(projectId), attempts])).not.toMatch(/pass%40word|pass@word/);

    answer = undefined;
    await eventually(
      async () => {
        dispatch.pass(5_000);
        expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: 3, failed: 0 } });
      },
      { timeoutMs: 30_000 },
    );
    await eventually(async () => expect(await view(projectId)).not.toHaveProperty("problems"));
  },
);

test("an endpoint that a device named is resolved here: the proxy is not asked for a name that a stranger chose", async () => {
  const projectId = await dispatch.project();
  const web = await putOther(dispatch, projectId, "webpush", { subject: "mailto:ops@example.com" });
  const { keys } = services.webpush.subscribe({ applicationServerKey: String(web.settings.public_key) });
  const before = proxy.asked.length;
  const id = await dispatch.send(projectId);
  const stranger = device("", { token: "https://elsewhere.push.example/x", keys });
  await dispatch.partition(projectId, id, [[stranger]], { platform: "web" });
  await eventually(async () => {
    const asked = { projectId, notificationId: id, deviceId: stranger.id };
    const { attempts } = await sendRequest(dispatch.bus, deliveryRequests.trace, asked);
    expect(attempts.at(-1)?.provider_reason).toContain("unless HERALD_PROXY_RESOLVES is set");
  });
  expect(proxy.asked.slice(before)).toEqual([]);
});
