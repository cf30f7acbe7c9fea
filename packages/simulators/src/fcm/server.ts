import { randomBytes } from "node:crypto";
import type { Reply } from "../exchange.ts";
import { createH2Server } from "../h2-server.ts";
import { type HttpRequest, onRequests } from "../http-requests.ts";
import type { Parts } from "../parts.ts";
import type { Rule } from "../script/rule.ts";
import { settle } from "../script/settle.ts";
import type { Simulator } from "../simulator.ts";
import { createTimers } from "../timers.ts";
import { checkMessage } from "./check-message.ts";
import { fcmError, googleError, invalidArgument, unauthenticated } from "./errors.ts";
import { createTokenEndpoint, type FcmAccount, oauthError } from "./token-endpoint.ts";

export interface FcmOptions {
  /** Service accounts by which assertions are verified. None: any signature is accepted. */
  readonly accounts?: readonly FcmAccount[];
  /** Milliseconds since 1970, for the age of tokens. */
  readonly now?: () => number;
}

export interface FcmSimulator extends Simulator {
  /** Access tokens given out since the start. */
  tokensIssued(): number;
}

/** A message has 4 KiB of content, but its JSON may be far longer: more than this is no message. */
const maxBody = 65_536;
const sendPath = /^\/v1\/projects\/([^/?]+)\/messages:send$/;

const accepted = (name: string): Reply => ({
  status: 200,
  headers: { "content-type": "application/json; charset=UTF-8" },
  body: JSON.stringify({ name }),
});

const withExtras = (reply: Reply, { headers, body }: Rule): Reply => ({
  ...reply,
  headers: { ...reply.headers, ...headers },
  body: body ?? reply.body,
});

/** Google's token endpoint and FCM's HTTP v1 API on one origin, over HTTP/2 and HTTP/1.1. */
export async function startFcm({
  identity,
  script,
  log,
  host,
  publicHost,
  port,
  options,
}: Parts<FcmOptions>): Promise<FcmSimulator> {
  const { accounts = [], now = Date.now } = options;
  const timers = createTimers();
  const h2 = createH2Server({ provider: "fcm", identity, script, allowHttp1: true });
  const tokens = createTokenEndpoint({ accounts, audience: () => `${url}/token`, now });

  const grant = async ({ method, headers, body, exchange, proven }: HttpRequest) => {
    if (method !== "POST") return exchange.answer(oauthError(405, "invalid_request", "POST only"));
    const form = body.toString();
    const natural = await tokens.grant(headers["content-type"], form);
    if (natural.status === 200) proven();
    settle({
      rule: natural.status === 200 ? script.match("fcm-token", tokens.issuerOf(form)) : undefined,
      natural,
      scripted: (rule, status) =>
        withExtras(oauthError(status, rule.reason ?? "internal_failure", "As the script says."), rule),
      exchange,
      // Not a push, so not in the log.
      record: () => {},
      after: timers.after,
    });
  };

  /** The refusal, or undefined when the sender may send for this project. */
  const authenticate = ({ headers: { authorization } }: HttpRequest, project: string): Reply | undefined => {
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

  const send = (request: HttpRequest, project: string) => {
    const { method, headers, exchange, size } = request;
    const text = request.body.toString();
    const name = `projects/${project}/messages/0:${now()}%${randomBytes(8).toString("hex")}`;
    const refuse = (reply: Reply, token = "") => {
      const { status, reason, problem } = reply;
      log.add({ provider: "fcm", token, headers, payload: text, id: "", status, reason, problem });
      exchange.answer(reply);
    };
    if (method !== "POST") return refuse(googleError(405, "POST only"));
    const refusal = authenticate(request, project);
    if (refusal !== undefined) return refuse(refusal);
    request.proven();
    if (!headers["content-type"]?.startsWith("application/json"))
      return refuse(googleError(400, "content-type: not application/json"));
    if (size > maxBody)
      return refuse(invalidArgument([{ field: "message", description: `Message is too big: ${size} bytes` }]));
    const message = checkMessage(text);
    if ("violations" in message) return refuse(invalidArgument(message.violations));
    if (message.validateOnly) return exchange.answer(accepted(`projects/${project}/messages/fake_message_id`));

    settle({
      rule: script.match("fcm", message.target),
      natural: accepted(name),
      scripted: (rule, status) => withExtras(status === 200 ? accepted(name) : fcmError(status, rule.reason), rule),
      exchange,
      record: (answered) =>
        log.add({
          provider: "fcm",
          token: message.target,
          headers,
          payload: message.payload,
          id: name,
          ...answered,
        }),
      after: timers.after,
    });
  };

  onRequests(h2, maxBody, (request) => {
    if (request.path === "/token")
      return void grant(request).catch(() =>
        request.exchange.answer(oauthError(500, "internal_failure", "the simulator failed")),
      );
    const project = sendPath.exec(request.path)?.[1];
    if (project === undefined) return request.exchange.answer(googleError(404, `${request.path}: no such method`));
    send(request, project);
  });

  const url = `https://${publicHost}:${await h2.listen(host, port)}`;
  return {
    name: "fcm",
    url,
    tokensIssued: tokens.issued,
    connectionCount: h2.connectionCount,
    async stop() {
      timers.clear();
      await h2.stop();
    },
  };
}
