import type { Transport, TransportAnswer } from "@herald/http2-client";
import type { JWT } from "google-auth-library";
import { type Outcome, shown, unanswered, wordOr } from "../outcome.ts";
import type { ServiceAccount } from "./settings.ts";

/** A header value, or the outcome of a push when there is none. */
export type Authorization = string | Outcome;

export type AccessTokens = {
  /** A promise only when there is no token that can be used now. */
  current(): Authorization | Promise<Authorization>;
  /** Google calls `stale` invalid: another one; undefined when it was fetched a moment ago, so that another would be no better. */
  renew(stale: string): Promise<Authorization> | undefined;
};

const oauthScope = "https://www.googleapis.com/auth/firebase.messaging";
const minuteMs = 60_000;
/** A token lives an hour: in the last ten minutes a new one is fetched while the old one is still used … */
const refreshBeforeMs = 10 * minuteMs;
/** … and in the last minute the old one is not, for what is on its way and for clocks that differ. */
const unusableBeforeMs = minuteMs;
/** A batch of hundreds that all find no token asks once; so does the next one for so long after a failure. */
const failurePauseMs = 5_000;

/** OAuth access tokens of one service account, over a transport to Google's token endpoint or what stands in for it. */
export function createAccessTokens(
  account: ServiceAccount,
  { transport, origin }: { readonly transport: Transport; readonly origin: string },
  now: () => Date,
): AccessTokens {
  /** The library wraps the errors of its requests: kept here to report why the request failed. */
  const unansweredOnes: Parameters<typeof unanswered>[0][] = [];
  const createClient = async (): Promise<JWT> => {
    // Loaded by the first push to FCM: a process that has none does not hold it.
    const library = await import("google-auth-library");
    return new library.JWT({
      email: account.client_email,
      key: account.private_key,
      keyId: account.private_key_id,
      scopes: [oauthScope],
      transporterOptions: {
        fetchImplementation: fetchOver(async (request) => {
          const answer = await transport.send(request);
          if (answer.kind === "answered") unansweredOnes.length = 0;
          else unansweredOnes.push(answer);
          return answer;
        }),
      },
    });
  };
  let client: Promise<JWT> | undefined;
  let header: string | undefined;
  let usableUntil = 0;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failure: { readonly outcome: Outcome; readonly at: number } | undefined;
  let fetching: Promise<Authorization> | undefined;

  const fetchNew = async (): Promise<Authorization> => {
    const started = now().getTime();
    unansweredOnes.length = 0;
    if (failure !== undefined && started - failure.at < failurePauseMs) return failure.outcome;
    try {
      client ??= createClient();
      const jwt = await client;
      jwt.setCredentials({ refresh_token: "jwt-placeholder", expiry_date: 1 }); // how this library marks a token as over
      const { token } = await jwt.getAccessToken();
      if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token))
        throw new Error("the token endpoint gave no token");
      header = `Bearer ${token}`;
      fetchedAt = started;
      // A lifetime that is missing or absurdly short must not make every push fetch a token of its own.
      usableUntil = started + Math.max((jwt.credentials.expiry_date ?? 0) - Date.now(), 2 * unusableBeforeMs);
      failure = undefined;
      return header;
    } catch (error) {
      // Whatever was asked for may be asked for again: no push was sent.
      const lost = unansweredOnes.at(-1);
      const outcome = lost
        ? unanswered({ kind: "unprocessed", reason: `no access token: ${lost.reason}` }, origin)
        : outcomeOfFailure(error);
      failure = { outcome, at: now().getTime() };
      return outcome;
    }
  };
  const fetchOnce = (): Promise<Authorization> => {
    fetching ??= fetchNew().finally(() => {
      fetching = undefined;
    });
    return fetching;
  };

  return {
    current() {
      const left = usableUntil - now().getTime();
      if (header === undefined || left <= unusableBeforeMs) return fetchOnce();
      if (left <= refreshBeforeMs) void fetchOnce();
      return header;
    },
    renew(stale) {
      if (header !== undefined && header !== stale) return Promise.resolve(header);
      if (fetching !== undefined) return fetching;
      return now().getTime() - fetchedAt < minuteMs ? undefined : fetchOnce();
    },
  };
}

/** Google refuses the key itself with 400 or 401; anything else may be over soon. */
function outcomeOfFailure(error: unknown): Outcome {
  const { response, message } = error as {
    response?: { status?: number; data?: { error?: unknown } };
    message?: unknown;
  };
  const status = response?.status;
  if (status === undefined) return { kind: "deferred", providerReason: shown(`no access token: ${String(message)}`) };
  const providerReason = wordOr(response?.data?.error, status);
  const refused = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return refused ? { kind: "misconfigured", providerReason } : { kind: "deferred", providerReason };
}

/** The library's requests, over a transport that knows one origin: whatever address it would choose, nothing else is called. */
function fetchOver(send: (request: Parameters<Transport["send"]>[0]) => Promise<TransportAnswer>): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const body = typeof init?.body === "string" ? init.body : String(init?.body ?? "");
    const answer = await send({
      path: url.pathname,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body,
    });
    if (answer.kind !== "answered") throw new Error(answer.reason);
    const contentType = answer.headers["content-type"] ?? "application/json";
    const empty = answer.status === 204 || answer.status === 304;
    return new Response(empty ? null : answer.body, {
      status: answer.status,
      headers: { "content-type": contentType },
    });
  };
}
