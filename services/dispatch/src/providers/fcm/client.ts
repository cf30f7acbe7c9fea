import type { FcmSettings } from "@herald/contracts";
import type { Transport, TransportAnswer, TransportOptions } from "@herald/http2-client";
import { type Outcome, unanswered } from "../outcome.ts";
import { createAccessTokens } from "./access-tokens.ts";
import { fcmOutcome } from "./outcome.ts";
import { ServiceAccount } from "./settings.ts";

/** One message for one device: the JSON of `messages:send`, which names its `token` or `fid`. */
export type FcmPush = { readonly body: string };

export type FcmClient = {
  /** Never rejects for what Google or the network did. */
  send(push: FcmPush): Promise<Outcome>;
  close(): Promise<void>;
};

export type FcmClientDeps = {
  readonly settings: FcmSettings;
  readonly createTransport: (options: TransportOptions) => Transport;
  readonly now: () => Date;
};

const fcmOrigin = "https://fcm.googleapis.com";
const googleOauthOrigin = "https://oauth2.googleapis.com";

/** Google's words for a credential that it does not take, which another access token may mend. */
const staleTokenReasons = new Set(["UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED"]);

/** Sends to Firebase Cloud Messaging (HTTP v1) for one project. `endpoint` stands in for Google's token endpoint too. */
export function createFcmClient({ settings, createTransport, now }: FcmClientDeps): FcmClient {
  const { endpoint, ca } = settings;
  const account = ServiceAccount.parse(settings.service_account);
  const path = `/v1/projects/${account.project_id}/messages:send`;
  const origin = endpoint ?? fcmOrigin;
  const oauthOrigin = endpoint ?? googleOauthOrigin;
  const transport = createTransport({ origin, ca });
  const oauth = createTransport({ origin: oauthOrigin, ca, connections: 1 });
  const tokens = createAccessTokens(account, { transport: oauth, origin: oauthOrigin }, now);

  const post = (authorization: string, { body }: FcmPush): Promise<TransportAnswer> =>
    transport.send({ path, headers: { authorization, "content-type": "application/json" }, body });
  const judge = (answer: TransportAnswer): Outcome =>
    answer.kind === "answered" ? fcmOutcome(answer, now()) : unanswered(answer, origin);

  return {
    async send(push) {
      const current = tokens.current();
      const authorization = current instanceof Promise ? await current : current;
      if (typeof authorization !== "string") return authorization;
      const outcome = judge(await post(authorization, push));
      if (outcome.kind !== "misconfigured" || !staleTokenReasons.has(outcome.providerReason)) return outcome;
      const renewed = await tokens.renew(authorization);
      if (renewed === undefined) return outcome;
      return typeof renewed === "string" ? judge(await post(renewed, push)) : renewed;
    },
    async close() {
      await Promise.all([transport.close(), oauth.close()]);
    },
  };
}
