import { errorOf, HeraldError } from "./error.ts";

export type HeraldOptions = {
  /** Where the gateway answers, such as `https://herald.example.com`. */
  readonly url: string;
  /** A project token, `hpt_…`; of {@link HeraldAdmin} the admin token. */
  readonly token: string;
  /** Instead of the runtime's own. */
  readonly fetch?: typeof fetch;
  /** How long one attempt may take, in milliseconds: 30 s unless you say otherwise. */
  readonly timeoutMs?: number;
  /** How often a call is tried again: 3 times unless you say otherwise. */
  readonly maxRetries?: number;
};

export type CallOptions = {
  /** Ends the call, its retries and its waiting. */
  readonly signal?: AbortSignal | undefined;
};

/** Of a call that makes something. */
export type PostOptions = CallOptions & {
  /** Calls with the same key and content have one effect, for 24 hours. Without it each call gets a key of its own, which its retries share. */
  readonly idempotencyKey?: string | undefined;
};

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

type Call = PostOptions & {
  readonly query?: Query;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Longer waits are the caller's decision: a used-up quota says an hour. */
const maxWaitMs = 60_000;
const firstBackoffMs = 250;

/** Resolves after a while; rejects with the signal's reason when that is aborted. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
  });

/** No answer, one from a proxy that got none, one that says "later", or the first try of this call that still runs. */
const isWorthRetrying = ({ status, slug }: HeraldError): boolean =>
  status === undefined || [429, 502, 503, 504].includes(status) || slug === "request-in-progress";

/** As long as Herald asks for, or twice as long each time; never exactly, so that many clients do not come back together. */
export const backoffMs = (attempt: number, retryAfter = 0): number =>
  retryAfter * 1_000 + firstBackoffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);

const causeOf = (error: unknown): string => {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message || ((cause as { code?: string }).code ?? cause.name) : String(cause);
};

/**
 * Calls the API. Every call can be repeated: a POST carries an Idempotency-Key, everything else has the same effect twice. So what gets
 * no answer is tried again, and nothing is ever sent twice.
 */
export const createHttp = ({ url, token, fetch: custom, timeoutMs = 30_000, maxRetries = 3 }: HeraldOptions) => {
  if (!URL.canParse(url)) throw new TypeError("url: must be an absolute URL, such as https://herald.example.com");
  // The runtime would put it into its error.
  if (!/^[!-~]+$/.test(token)) throw new TypeError("token: must be a token of Herald's, without spaces");
  const base = url.replace(/\/+$/, "");

  /** One attempt. A stream's answer is complete when it begins. */
  const attempt = async (method: Method, target: string, call: Call, stream: boolean): Promise<Response | unknown> => {
    const { signal, body, headers } = call;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    try {
      const response = await (custom ?? fetch)(target, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          accept: stream ? "text/event-stream" : "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
        redirect: "manual", // a POST would be followed as a GET
      });
      if (stream && response.ok) return response;
      const text = await response.text();
      if (!response.ok) throw errorOf(response, text);
      if (text === "") return undefined;
      if (!response.headers.get("content-type")?.includes("json")) throw errorOf(response, text);
      return JSON.parse(text);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HeraldError) throw error;
      const [slug, why] = timeout.signal.aborted
        ? ["timeout", `within ${timeoutMs} ms`]
        : ["unreachable", causeOf(error)];
      throw new HeraldError(slug, `${base} did not answer: ${why}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  };

  const call = async (method: Method, path: string, options: Call = {}, stream = false): Promise<unknown> => {
    const { query = {}, idempotencyKey, signal } = options;
    signal?.throwIfAborted();
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const target = `${base}${path}${search.size > 0 ? `?${search}` : ""}`;
    const headers = { ...options.headers };
    if (method === "POST") headers["idempotency-key"] = idempotencyKey ?? crypto.randomUUID();
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(method, target, { ...options, headers }, stream);
      } catch (error) {
        if (!(error instanceof HeraldError) || !isWorthRetrying(error) || tries > maxRetries) throw error;
        const waitMs = backoffMs(tries, error.retryAfter);
        if (waitMs > maxWaitMs) throw error;
        await sleep(waitMs, signal);
      }
    }
  };

  const data =
    (method: Method) =>
    async <Row>(path: string, options?: Call): Promise<Row> =>
      ((await call(method, path, options)) as { data: Row }).data;

  return {
    get: data("GET"),
    post: data("POST"),
    put: data("PUT"),
    patch: data("PATCH"),
    delete: data("DELETE"),
    /** The whole body, for what stands beside `data`: pages and secrets. */
    body: async <Body>(method: Method, path: string, options?: Call) => (await call(method, path, options)) as Body,
    /** For answers without a body. */
    done: async (method: Method, path: string, options?: Call): Promise<void> => {
      await call(method, path, options);
    },
    /** An answer that has no end; the signal ends it. */
    stream: async (path: string, options: Call) => (await call("GET", path, options, true)) as Response,
  };
};

export type Http = ReturnType<typeof createHttp>;

/** A path with what came from outside in it. */
export const path = (parts: TemplateStringsArray, ...values: string[]): string =>
  parts.reduce((text, part, index) => text + encodeURIComponent(values[index - 1] ?? "") + part);
