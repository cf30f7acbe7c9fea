import { randomBytes } from "node:crypto";
import type { Reply } from "../exchange.ts";
import { createH2Server } from "../h2-server.ts";
import { type HttpRequest, onRequests } from "../http-requests.ts";
import { createHttp1Server } from "../http1-server.ts";
import type { Parts } from "../parts.ts";
import { settle } from "../script/settle.ts";
import type { Simulator } from "../simulator.ts";
import { createTimers } from "../timers.ts";
import { checkRequest, keptFor, maxBody } from "./check-request.ts";
import { decrypt } from "./decrypt.ts";
import {
  createSubscriptions,
  type SubscribeOptions,
  type Subscriber,
  type WebPushSubscription,
} from "./subscriptions.ts";
import { checkVapid, vapidKeyOf } from "./vapid.ts";

export interface WebPushOptions {
  /** Milliseconds since 1970, for the age of VAPID tokens. */
  readonly now?: () => number;
  /** Speaks HTTP/1.1 alone, as a UnifiedPush server may. Default: HTTP/2 too. */
  readonly http1Only?: boolean;
}

export interface WebPushSimulator extends Simulator {
  /** A new subscription, as a browser would hand to its app. */
  subscribe(options?: SubscribeOptions): WebPushSubscription;
  /** Pushes to it are answered 410 from now on. `id` is the last part of the endpoint. @returns false if there is none */
  unsubscribe(id: string): boolean;
}

const pushPath = /^\/push\/([\w-]+)$/;

const failure = (status: number, problem: string): Reply => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: problem,
  problem,
});

/** A push service of browsers (RFC 8030) that reads what it gets as the browser would. */
export async function startWebPush({
  identity,
  script,
  log,
  host,
  publicHost,
  port,
  options,
}: Parts<WebPushOptions>): Promise<WebPushSimulator> {
  const { now = Date.now, http1Only = false } = options;
  const timers = createTimers();
  const listener = http1Only
    ? createHttp1Server(identity)
    : createH2Server({ provider: "webpush", identity, script, allowHttp1: true });
  const subscriptions = createSubscriptions(() => url);

  /** What the browser shows: text, or null for a push without one. */
  const open = (request: HttpRequest, subscriber: Subscriber) => {
    if (request.size === 0) return { payload: null };
    try {
      return { payload: decrypt(request.body, subscriber) };
    } catch (error) {
      // A real service could not tell; the browser would throw it away without a word.
      return failure(400, error instanceof Error ? error.message : "body: cannot be decrypted");
    }
  };

  const check = async (request: HttpRequest, id: string) => {
    if (request.method !== "POST") return failure(405, ":method: not POST");
    const subscriber = subscriptions.find(id);
    if (subscriber === undefined) return failure(404, "no such subscription");
    if (subscriber === "gone") return failure(410, "the subscription has ended");
    const { applicationServerKey } = subscriber;
    const vapid = await checkVapid(request.headers.authorization, { audience: url, applicationServerKey, now: now() });
    if (vapid !== undefined) return failure(vapid.status, vapid.problem);
    // Lax for an app that named no key, and strict from its first push on: a push with another key is refused.
    subscriber.applicationServerKey ??= vapidKeyOf(request.headers.authorization);
    request.proven();
    const wrong = checkRequest(request.headers, request.size);
    return wrong === undefined ? open(request, subscriber) : failure(wrong.status, wrong.problem);
  };

  const receive = async (request: HttpRequest, id: string) => {
    const { headers, exchange } = request;
    const endpoint = `${url}/push/${id}`;
    const vapidKey = vapidKeyOf(headers.authorization);
    const opened = await check(request, id);
    if ("status" in opened) {
      const { status, problem } = opened;
      log.add({ provider: "webpush", token: endpoint, headers, vapidKey, payload: null, id: "", status, problem });
      return exchange.answer(opened);
    }
    const message = randomBytes(16).toString("base64url");
    const accepted: Reply = {
      status: 201,
      headers: { location: `${url}/message/${message}`, ttl: String(keptFor(headers)) },
    };
    settle({
      rule: script.match("webpush", endpoint, id),
      natural: accepted,
      scripted: (rule, status) => {
        const reply = status === 201 ? accepted : failure(status, rule.reason ?? "As the script says.");
        return {
          ...reply,
          headers: { ...reply.headers, ...rule.headers },
          body: rule.body ?? reply.body,
          reason: rule.reason,
        };
      },
      exchange,
      record: (answered) =>
        log.add({ provider: "webpush", token: endpoint, headers, vapidKey, ...opened, id: message, ...answered }),
      after: timers.after,
    });
  };

  onRequests(listener, maxBody, (request) => {
    const id = pushPath.exec(request.path)?.[1];
    if (id === undefined) return request.exchange.answer(failure(404, `${request.path}: no push resource`));
    receive(request, id).catch(() => request.exchange.answer(failure(500, "the simulator failed")));
  });

  const url = `https://${publicHost}:${await listener.listen(host, port)}`;
  return {
    name: "webpush",
    url,
    subscribe: subscriptions.subscribe,
    unsubscribe: subscriptions.unsubscribe,
    connectionCount: listener.connectionCount,
    async stop() {
      timers.clear();
      await listener.stop();
    },
  };
}
