import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type ReceivedEvent = {
  readonly id: string;
  readonly type: string;
  readonly data: { readonly project_id: string };
};
type Received = {
  readonly event: ReceivedEvent;
  readonly messageId: string;
  /** Whether it was signed with the secret of its path. */
  readonly genuine: boolean;
  /** Whether it was answered with 2xx, so it must not come again. */
  readonly taken: boolean;
};

/** A request as the input of a mood; `before` counts earlier requests with the same message on this path. */
type Post = { readonly event: ReceivedEvent; readonly path: string; readonly before: number };

/** How the receiver answers a request: with a status, or never. */
export type Mood = (post: Post) => number | "hang";

/** Verifies by hand after the specification, independently of the implementation that signs. */
const isGenuine = (headers: Record<string, string | undefined>, body: string, secret: string | undefined): boolean => {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  const key = Buffer.from((secret ?? "").replace("whsec_", ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const age = Math.abs(Date.now() / 1_000 - Number(timestamp));
  return age < 300 && signatures.split(" ").includes(`v1,${expected}`);
};

/** Receives webhooks, each on its own path, and records the requests. */
export async function startWebhookReceiver(mood: Mood) {
  const received = new Map<string, Received[]>();
  const secrets = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    const body = Buffer.concat(await request.toArray()).toString();
    const headers = request.headers as Record<string, string | undefined>;
    const event: ReceivedEvent = JSON.parse(body);
    const messageId = headers["webhook-id"] ?? "";
    const all = received.get(path) ?? [];
    const before = all.filter((one) => one.messageId === messageId).length;
    const answer = mood({ event, path, before });
    const genuine = isGenuine(headers, body, secrets.get(path));
    const taken = answer !== "hang" && answer >= 200 && answer < 300;
    received.set(path, [...all, { event, messageId, genuine, taken }]);
    if (answer !== "hang") response.writeHead(answer).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (path: string) => `http://127.0.0.1:${port}${path}`,
    /** Sets the secret that signs the requests on a path. */
    expectSecret: (path: string, secret: string) => {
      secrets.set(path, secret);
    },
    on: (path: string): readonly Received[] => received.get(path) ?? [],
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;
