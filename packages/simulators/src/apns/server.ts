import { randomUUID } from "node:crypto";
import type { Deps } from "../deps.ts";
import { overStream, type ProviderReply } from "../exchange.ts";
import { readBody } from "../http-requests.ts";
import { statusOf, usualReason } from "../script/apns-reasons.ts";
import { settleExchange } from "../script/settle.ts";
import { type ClientConnection, createH2Server } from "../tls-servers.ts";
import type { ApnsOptions } from "../types.ts";
import { channelRequestOf, scriptNameOf } from "./channels.ts";
import { checkHeaders, checkPath, checkPayload, maxApnsBody, tokenOf } from "./check-request.ts";
import { createPhones } from "./phones.ts";
import { type Authentication, createProviderTokens } from "./provider-token.ts";

export type ApnsSimulator = Awaited<ReturnType<typeof startApns>>;

const failure = (
  status: number,
  reason: string,
  headers: ProviderReply["headers"],
  rest: object = {},
): ProviderReply => ({
  status,
  headers,
  body: JSON.stringify({ reason, ...rest }),
  reason,
});

/** Starts a simulator of Apple's push service: HTTP/2 over TLS, strict about Apple's documented rules. */
export async function startApns(
  deps: Deps,
  port: number,
  { keys = [], limitTokenUpdates = false, now = Date.now }: ApnsOptions,
) {
  const { script, log } = deps;
  const tokens = createProviderTokens({ keys, limitUpdates: limitTokenUpdates, now });
  const phones = createPhones();
  const h2 = createH2Server("apns", deps, { requestCert: true });
  const authentications = new WeakMap<ClientConnection, Authentication>();

  const authenticate = (connection: ClientConnection, authorization: string | undefined) => {
    if (connection.certified && authorization === undefined) return undefined;
    const authentication = authentications.get(connection) ?? {};
    authentications.set(connection, authentication);
    return tokens.check(authorization, authentication);
  };

  h2.server.on("stream", (stream, headers) => {
    const connection = h2.begin(stream);
    if (connection === undefined) return;
    const path = headers[":path"];
    const asked = channelRequestOf(headers[":method"], path);

    const check = (payload: string, size: number) => {
      const refusal = authenticate(connection, headers.authorization);
      if (refusal !== undefined) return refusal;
      h2.proven(stream, connection);
      if (asked) return phones.channels.check(asked, { headers, payload, size });
      return (
        checkPath(headers[":method"], path) ??
        checkHeaders(headers) ??
        checkPayload(String(headers["apns-push-type"]), payload, size) ??
        phones.check(tokenOf(path), headers["apns-topic"]?.toString())
      );
    };

    readBody(stream, maxApnsBody, (body, size) => {
      const payload = body.toString();
      const refusal = check(payload, size);
      const token = asked ? scriptNameOf(asked) : tokenOf(path);
      const id = String(headers[asked ? "apns-request-id" : "apns-id"] ?? randomUUID().toUpperCase());
      // Only Apple's sandbox sends the second one.
      const common = asked ? { "apns-request-id": id } : { "apns-id": id, "apns-unique-id": randomUUID() };
      const rule = refusal ? undefined : script.match("apns", token);
      // At once, whenever and whether its answer arrives.
      const performed =
        asked && !refusal && rule?.status === undefined
          ? phones.channels.perform(asked, { headers, payload, size })
          : undefined;
      settleExchange({
        rule,
        natural: refusal
          ? { ...failure(statusOf(refusal.reason), refusal.reason, common), problem: refusal.problem }
          : (performed ?? { status: 200, headers: common }),
        scripted: (rule, status) => {
          if (rule.body !== undefined) return { status, headers: {}, reason: rule.reason };
          if (status === 200) return { status, headers: common };
          const reason = rule.reason ?? usualReason(status) ?? "InternalServerError";
          return failure(status, reason, common, status === 410 ? { timestamp: rule.timestamp ?? now() } : {});
        },
        exchange: overStream(stream, () => connection.socket.destroy()),
        record: (answered) => {
          log.add({ provider: "apns", token, headers, payload, id, ...answered });
          if (!asked && answered.status === 200) phones.instances.deliver(token, payload);
        },
      });
    });
  });

  const { connectionCount, stop } = h2;
  return {
    name: "apns" as const,
    url: await h2.listen(port),
    setKeys: tokens.setKeys,
    createPhone: phones.create,
    instances: phones.instances,
    channels: phones.channels,
    connectionCount,
    stop,
  };
}
