import { randomBytes } from "node:crypto";
import type { Instances } from "../apns/instances.ts";
import type { Deps } from "../deps.ts";
import type { ProviderReply } from "../exchange.ts";
import { type HttpRequest, onRequests } from "../http-requests.ts";
import { settleExchange } from "../script/settle.ts";
import { createH2Server } from "../tls-servers.ts";
import type { FcmOptions } from "../types.ts";
import { type CheckedMessage, checkMessage } from "./check-message.ts";
import { fcmError, googleError, invalidArgument, unauthenticated } from "./errors.ts";
import { createTokenEndpoint, oauthError } from "./token-endpoint.ts";

export type FcmSimulator = Awaited<ReturnType<typeof startFcm>>;

/** A message has 4 KiB of content, but its JSON may be far longer. A larger body is not a message. */
const maxBody = 65_536;
const sendPath = /^\/v1\/projects\/([^/?]+)\/messages:send$/;

const accepted = (name: string): ProviderReply => ({
  status: 200,
  headers: { "content-type": "application/json; charset=UTF-8" },
  body: JSON.stringify({ name }),
});

/** FCM passes a push of a Live Activity to APNs, which knows it by its own token. */
const passToApns = ({ apns }: CheckedMessage["payload"], { deliver }: Pick<Instances, "deliver">): void => {
  const { live_activity_token: snake, liveActivityToken = snake, payload } = (apns ?? {}) as Record<string, unknown>;
  if (typeof liveActivityToken === "string") deliver(liveActivityToken, payload);
};

/** Starts Google's token endpoint and FCM's HTTP v1 API on one origin, over HTTP/2 and HTTP/1.1. */
export async function startFcm(
  deps: Deps,
  port: number,
  { accounts = [], now = Date.now }: FcmOptions,
  instances: Pick<Instances, "deliver">,
) {
  const { script, log } = deps;
  const h2 = createH2Server("fcm", deps, { allowHTTP1: true });
  const tokens = createTokenEndpoint({ accounts, audience: () => `${url}/token`, now });

  const grant = async ({ method, headers, body, exchange, proven }: HttpRequest) => {
    if (method !== "POST") return exchange.answer(oauthError(405, "invalid_request", "POST only"));
    const form = body.toString();
    const natural = await tokens.grant(headers["content-type"], form);
    if (natural.status === 200) proven();
    settleExchange({
      rule: natural.status === 200 ? script.match("fcm-token", tokens.issuerOf(form)) : undefined,
      natural,
      scripted: ({ reason = "internal_failure" }, status) => oauthError(status, reason, "As the script says."),
      exchange,
      // A token request is not a push, so it is not logged.
      record: () => {},
    });
  };

  /** The refusal; undefined when the sender may send for this project. */
  const authenticate = ({ headers: { authorization } }: HttpRequest, project: string): ProviderReply | undefined => {
    if (authorization === undefined) return unauthenticated("CREDENTIALS_MISSING", "authorization: missing");
    const token = /^bearer +(\S+)$/i.exec(authorization)?.[1];
    if (token === undefined)
      return unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED", "authorization: not `Bearer <token>`");
    const holder = tokens.holder(token);
    if (holder === undefined)
      return unauthenticated("ACCESS_TOKEN_EXPIRED", "authorization: not a token of this endpoint, or expired");
    if (holder.account !== undefined && holder.account.projectId !== project) {
      return googleError(403, `${holder.account.clientEmail} may not send for project ${project}`);
    }
    return undefined;
  };

  /** The message, or the refusal. */
  const check = (request: HttpRequest, project: string): CheckedMessage | ProviderReply => {
    if (request.method !== "POST") return googleError(405, "POST only");
    const refusal = authenticate(request, project);
    if (refusal !== undefined) return refusal;
    request.proven();
    if (!request.headers["content-type"]?.startsWith("application/json"))
      return googleError(400, "content-type: not application/json");
    const { size } = request;
    if (size > maxBody)
      return invalidArgument([{ field: "message", description: `Message is too big: ${size} bytes` }]);
    const message = checkMessage(request.body.toString());
    return "violations" in message ? invalidArgument(message.violations) : message;
  };

  const send = (request: HttpRequest, project: string) => {
    const { headers, exchange } = request;
    const name = `projects/${project}/messages/0:${now()}%${randomBytes(8).toString("hex")}`;
    const message = check(request, project);
    if ("status" in message) {
      const { status, reason, problem } = message;
      const payload = request.body.toString();
      log.add({ provider: "fcm", token: "", headers, payload, id: "", status, reason, problem });
      return exchange.answer(message);
    }
    const { target: token, payload, validateOnly } = message;
    if (validateOnly) return exchange.answer(accepted(`projects/${project}/messages/fake_message_id`));
    settleExchange({
      rule: script.match("fcm", token),
      natural: accepted(name),
      scripted: ({ reason }, status) => (status === 200 ? accepted(name) : fcmError(status, reason)),
      exchange,
      record: (answered) => {
        log.add({ provider: "fcm", token, headers, payload, id: name, ...answered });
        if (answered.status === 200) passToApns(payload, instances);
      },
    });
  };

  onRequests(h2, maxBody, (request) => {
    if (request.path === "/token")
      return void grant(request).catch(() =>
        request.exchange.answer(oauthError(500, "internal_failure", "the simulator failed")),
      );
    const project = sendPath.exec(request.path)?.[1];
    if (project === undefined) return request.exchange.answer(googleError(404, `${request.path}: method not found`));
    send(request, project);
  });

  const url = await h2.listen(port);
  const { connectionCount, stop } = h2;
  return {
    name: "fcm" as const,
    url,
    /** The number of access tokens issued since the start. */
    tokensIssued: tokens.issued,
    connectionCount,
    stop,
  };
}
