import { createPrivateKey } from "node:crypto";
import type { Transport } from "@herald/http2-client";
import { SignJWT } from "jose";
import {
  isFailure,
  isWord,
  notTheProvider,
  type Outcome,
  type ProviderAnswer,
  parseObject,
  shown,
  unanswered,
} from "../outcome.ts";
import type { ServiceAccount } from "./settings.ts";

/** A header value, or the outcome of a push when there is none. */
type Authorization = string | Outcome;

const audience = "https://oauth2.googleapis.com/token";
const scope = "https://www.googleapis.com/auth/firebase.messaging";
const grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const minuteMs = 60_000;
/** In its last ten minutes, a new token is fetched while the old one is still used … */
const refreshBeforeMs = 10 * minuteMs;
/** … and in its last minute it is not used, because of requests in flight and clocks that differ. */
const unusableBeforeMs = minuteMs;
/** After a failure, no token is requested for this long, so that a batch of hundreds causes one request. */
const failurePauseMs = 5_000;

/** OAuth access tokens of one service account (RFC 7523), from Google's token endpoint or the project's `endpoint`. */
export const createAccessTokens = (
  { client_email, private_key, private_key_id: kid }: ServiceAccount,
  { transport, origin }: { readonly transport: Transport; readonly origin: string },
  now: () => Date,
) => {
  const key = createPrivateKey(private_key);
  let header: string | undefined;
  let usableUntil = 0;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failure: { readonly outcome: Outcome; readonly at: number } | undefined;
  let fetching: Promise<Authorization> | undefined;

  /** A new token, or the outcome without one. A push can be retried after it, because nothing was sent. */
  const request = async (at: number): Promise<{ token: string; lifetimeMs: number } | Outcome> => {
    const iat = Math.floor(at / 1_000);
    const assertion = await new SignJWT({ iss: client_email, scope, aud: audience, iat, exp: iat + 3_600 })
      .setProtectedHeader({ alg: "RS256", typ: "JWT", ...(kid !== undefined && { kid }) })
      .sign(key);
    const answer = await transport.send({
      path: new URL(audience).pathname,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: new URLSearchParams({ grant_type: grantType, assertion }).toString(),
    });
    if (answer.kind !== "answered")
      return unanswered({ kind: "unprocessed", reason: `no access token: ${answer.reason}` }, origin);
    const { access_token: token, expires_in: seconds } = parseObject(answer.body);
    if (answer.status !== 200) return outcomeOfRefusal(answer, origin);
    if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) return notTheProvider(answer, origin);
    return { token, lifetimeMs: Number(seconds) * 1_000 || 0 };
  };

  const fetchNew = async (): Promise<Authorization> => {
    const at = now().getTime();
    if (failure !== undefined && at - failure.at < failurePauseMs) return failure.outcome;
    const granted = await request(at).catch(
      (error: unknown): Outcome => noAccessToken(shown(`no access token: ${error}`)),
    );
    if ("kind" in granted) {
      failure = { outcome: granted, at: now().getTime() };
      return granted;
    }
    header = `Bearer ${granted.token}`;
    fetchedAt = at;
    // With a missing or very short lifetime, every push would otherwise fetch its own token.
    usableUntil = at + Math.max(granted.lifetimeMs, 2 * unusableBeforeMs);
    failure = undefined;
    return header;
  };
  const fetchOnce = (): Promise<Authorization> => {
    fetching ??= fetchNew().finally(() => {
      fetching = undefined;
    });
    return fetching;
  };

  return {
    /** A promise only when no usable token is cached. */
    current: (): Authorization | Promise<Authorization> => {
      const left = usableUntil - now().getTime();
      if (header === undefined || left <= unusableBeforeMs) return fetchOnce();
      if (left <= refreshBeforeMs) void fetchOnce();
      return header;
    },
    /** Replaces `stale`, which Google calls invalid. Undefined when it was fetched less than a minute ago: another one would not help. */
    renew: (stale: string): Promise<Authorization> | undefined => {
      if (header !== undefined && header !== stale) return Promise.resolve(header);
      if (fetching !== undefined) return fetching;
      return now().getTime() - fetchedAt < minuteMs ? undefined : fetchOnce();
    },
    /** Fetches another token for the next push, unless the current one is newer than `since`. */
    replace: (since: Date): void => {
      if (fetchedAt > since.getTime()) return;
      header = undefined;
      failure = undefined;
    },
  };
};

/** Errors of OAuth that Google gives with a 4xx when it is itself at fault. */
const temporary: ReadonlySet<string> = new Set(["internal_failure", "server_error", "temporarily_unavailable"]);
/** Google's longest description has 117 characters. */
const maxDescriptionLength = 200;

/** Without a token no push is sent, so it uses no attempt. */
const noAccessToken = (providerReason: string): Outcome => ({ kind: "deferred", unprocessed: true, providerReason });

/** A 4xx with OAuth's `error`, usually 400 or 401, means that Google refuses the key. 408, 429 and any other failure are temporary. */
const outcomeOfRefusal = (answer: ProviderAnswer, origin: string): Outcome => {
  const { status, body } = answer;
  const { error, error_description: description } = parseObject(body);
  if (!isWord(error))
    return isFailure(status) ? noAccessToken(`no access token: HTTP ${status}`) : notTheProvider(answer, origin);
  const refused = status >= 400 && status < 500 && status !== 408 && status !== 429 && !temporary.has(error);
  if (!refused) return noAccessToken(error);
  const detail = typeof description === "string" ? shown(description, maxDescriptionLength) : "";
  return { kind: "misconfigured", providerReason: error, ...(detail !== "" && { detail }) };
};
