import { randomBytes } from "node:crypto";
import type { Deps } from "../deps.ts";
import type { ProviderReply } from "../exchange.ts";
import { type HttpRequest, onRequests } from "../http-requests.ts";
import { settleExchange } from "../script/settle.ts";
import { repeatedName } from "../strict-json.ts";
import { createH2Server } from "../tls-servers.ts";
import type { WebPushOptions } from "../types.ts";
import { declarativeProblem } from "./check-declarative.ts";
import { checkRequest, keptFor, maxWebPushBody } from "./check-request.ts";
import { decryptPush } from "./decrypt.ts";
import { createSubscriptions, type Subscriber } from "./subscriptions.ts";
import { checkVapid, vapidKeyOf } from "./vapid.ts";

export type WebPushSimulator = Awaited<ReturnType<typeof startWebPush>>;

const pushPath = /^\/push\/([\w-]+)$/;

/** The form of Apple's words, such as BadJwtToken. */
const appleWord = /^[A-Z][a-z]+([A-Z][a-z]+)+$/;

/** `reason`: Apple's word, which is alone in the body. The other services write prose. */
const failure = (status: number, problem: string, reason?: string): ProviderReply => ({
  status,
  headers: { "content-type": reason === undefined ? "text/plain; charset=utf-8" : "application/json" },
  body: reason === undefined ? problem : JSON.stringify({ reason }),
  reason,
  problem,
});

/** A service worker parses JSON without a word about a name that is repeated, so the app would lose a value. */
const repeatedIn = (payload: string): string | undefined => {
  const name = payload.startsWith("{") ? repeatedName(payload) : undefined;
  return name && `payload: the name \`${name}\` is repeated in an object`;
};

/** Starts a browser's push service (RFC 8030) that also decrypts pushes as the browser would. */
export async function startWebPush(deps: Deps, port: number, options: WebPushOptions) {
  const { now = Date.now, http1Only = false, subscriptionsFile } = options;
  const { script, log } = deps;
  const listener = createH2Server("webpush", deps, {
    allowHTTP1: true,
    ...(http1Only && {
      ALPNCallback: ({ protocols }) => (protocols.includes("http/1.1") ? "http/1.1" : undefined),
    }),
  });
  const subscriptions = createSubscriptions(() => url, subscriptionsFile);

  /** The payload for the browser: text, or null for a push without a body. */
  const open = (request: HttpRequest, subscriber: Subscriber) => {
    if (request.size === 0) return { payload: null };
    // A real service could not detect these errors, and the browser would silently drop the push.
    try {
      const payload = decryptPush(request.body, subscriber);
      const isDeclarative = request.headers["content-type"] === "application/notification+json";
      const problem = isDeclarative ? declarativeProblem(payload) : repeatedIn(payload);
      return problem === undefined ? { payload } : failure(400, problem);
    } catch (error) {
      return failure(400, error instanceof Error ? error.message : "body: cannot be decrypted");
    }
  };

  const check = async (request: HttpRequest, id: string) => {
    if (request.method !== "POST") return failure(405, ":method: not POST");
    const subscriber = subscriptions.find(id);
    if (subscriber === undefined) return failure(404, "subscription not found");
    if (subscriber === "gone") return failure(410, "the subscription has ended");
    const { applicationServerKey } = subscriber;
    const vapid = await checkVapid(request.headers.authorization, { audience: url, applicationServerKey, now: now() });
    if (vapid !== undefined) return failure(vapid.status, vapid.problem, vapid.reason);
    subscriptions.bind(subscriber, vapidKeyOf(request.headers.authorization));
    request.proven();
    const wrong = checkRequest(request.headers, request.size);
    return wrong === undefined ? open(request, subscriber) : failure(wrong.status, wrong.problem, wrong.reason);
  };

  const receive = async (request: HttpRequest, id: string) => {
    const { headers, exchange } = request;
    const token = `${url}/push/${id}`;
    const vapidKey = vapidKeyOf(headers.authorization);
    const opened = await check(request, id);
    const refusal = "status" in opened ? opened : undefined;
    const payload = "payload" in opened ? opened.payload : null;
    const message = refusal ? "" : randomBytes(16).toString("base64url");
    const accepted: ProviderReply = {
      status: 201,
      headers: { location: `${url}/message/${message}`, ttl: String(keptFor(headers)) },
    };
    settleExchange({
      rule: refusal ? undefined : script.match("webpush", token, id),
      natural: refusal ?? accepted,
      scripted: ({ reason }, status) => {
        const words = reason ?? "As the script says.";
        const { headers, body } = status === 201 ? accepted : failure(status, words, appleWord.exec(words)?.[0]);
        return { status, headers, body, reason };
      },
      exchange,
      record: (answered) =>
        log.add({ provider: "webpush", token, headers, vapidKey, payload, id: message, ...answered }),
    });
  };

  onRequests(listener, maxWebPushBody, (request) => {
    const id = pushPath.exec(request.path)?.[1];
    if (id === undefined) return request.exchange.answer(failure(404, `${request.path}: no push resource`));
    receive(request, id).catch(() => request.exchange.answer(failure(500, "the simulator failed")));
  });

  const url = await listener.listen(port);
  const { subscribe, unsubscribe } = subscriptions;
  const { connectionCount, stop } = listener;
  return { name: "webpush" as const, url, subscribe, unsubscribe, connectionCount, stop };
}
