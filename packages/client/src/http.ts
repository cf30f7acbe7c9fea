import { errorOf, HeraldError } from "./error.ts";

export type HeraldOptions = {
  /** The gateway's address, such as `https://herald.example.com`. */
  readonly url: string;
  /** A project token, `hpt_…`; for HeraldAdmin an operator's, `hop_…`, or the admin token. */
  readonly token?: string | undefined;
  /** Instead of a token, in a page that Herald serves: the session of its cookie. Without a `csrfToken` it reads and signs in. */
  readonly session?: { readonly csrfToken?: string | undefined } | undefined;
  /** The project that an operator's token or session acts for, `prj_…`. */
  readonly project?: string | undefined;
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Time limit of each attempt, in milliseconds. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /** How often a call is retried. Default: 3. */
  readonly maxRetries?: number | undefined;
  /** The longest wait before a retry, in milliseconds. A call that Herald asks to come back later than that fails at once. Default: 60 s. */
  readonly maxWaitMs?: number | undefined;
};

export type CallOptions = {
  /** Aborts the call, including its retries and waits. */
  readonly signal?: AbortSignal | undefined;
};

/** Options of a POST. */
export type PostOptions = CallOptions & {
  /** For 24 hours, calls with the same key and content have one effect. Default: a random key, which all retries of the call share. */
  readonly idempotencyKey?: string | undefined;
};

type Call = PostOptions & {
  /** Names in camelCase become snake_case. Undefined values are left out. */
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
};

/** The content of a file. */
export type FileBody = ReadableStream<Uint8Array> | Blob | string;

type Kind = {
  readonly body?: unknown;
  /** Sent as it is, in one attempt without a time limit. */
  readonly file?: FileBody;
  readonly stream?: boolean;
  readonly mayBeGone?: boolean;
};

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Longer waits are the caller's decision: a quota may ask for an hour. */
const defaultMaxWaitMs = 60_000;
const firstBackoffMs = 250;

/** Rejects with the signal's reason if it is aborted meanwhile. */
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

/** No answer, a proxy that got none, or a part of Herald that is unavailable. */
export const isUnavailable = ({ status }: HeraldError): boolean =>
  status === undefined || [502, 503, 504].includes(status);

/** "Try again later", or a first attempt that is still running, is also worth a retry. */
const isWorthRetrying = (error: HeraldError): boolean =>
  isUnavailable(error) || error.status === 429 || error.slug === "request-in-progress";

/** Retry-After, or exponential; with jitter, so that many clients do not return at the same moment. */
export const backoffMs = (attempt: number, retryAfter = 0): number =>
  retryAfter * 1_000 + firstBackoffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);

const causeOf = (error: unknown): string => {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message || ((cause as { code?: string }).code ?? cause.name) : String(cause);
};

/**
 * Calls the routes below `root`. Every call is safe to repeat: a POST carries an Idempotency-Key, all other methods are idempotent. So calls
 * without an answer are retried, and nothing is ever sent twice.
 */
export const createHttp = (options: HeraldOptions, root: "/api/v1" | "/admin/v1") => {
  const {
    url,
    token = "",
    session,
    project,
    fetch: custom,
    timeoutMs = 30_000,
    maxRetries = 3,
    maxWaitMs = defaultMaxWaitMs,
  } = options;
  if (!URL.canParse(url)) throw new TypeError("url: must be an absolute URL, such as https://herald.example.com");
  // fetch would quote a malformed token in its error.
  if (session === undefined && !/^[!-~]+$/.test(token))
    throw new TypeError("token: must be a token of Herald's, without spaces");
  const credentials: Record<string, string> = session === undefined ? { authorization: `Bearer ${token}` } : {};
  if (session?.csrfToken !== undefined) credentials["herald-csrf"] = session.csrfToken;
  if (project !== undefined) credentials["herald-project"] = project;

  /** One attempt. The answer of a stream is returned as soon as its headers are there. */
  const attempt = async (method: Method, target: string, call: Call & Kind): Promise<Response | unknown> => {
    const { signal, body, file, headers, stream } = call;
    const timeout = new AbortController();
    const timer = file === undefined ? setTimeout(() => timeout.abort(), timeoutMs) : undefined;
    try {
      const response = await (custom ?? fetch)(target, {
        method,
        headers: {
          ...credentials,
          accept: stream ? "text/event-stream" : "application/json",
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        body: file ?? JSON.stringify(body),
        signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
        redirect: "manual", // fetch would follow a POST with a GET
        duplex: "half", // Node's fetch asks for it where the body is a stream
      } as RequestInit);
      if (stream && response.ok) return response;
      const text = await response.text();
      if (response.status === 204) return undefined;
      if (!response.ok || !response.headers.get("content-type")?.includes("json")) throw errorOf(response, text);
      return JSON.parse(text);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HeraldError) throw error;
      const [slug, why] = timeout.signal.aborted
        ? ["timeout", `within ${timeoutMs} ms`]
        : ["unreachable", causeOf(error)];
      throw new HeraldError(slug, `${url} did not answer: ${why}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  };

  const call = async (method: Method, path: string, options: Call & Kind = {}): Promise<unknown> => {
    const { query = {}, idempotencyKey, signal, file, mayBeGone } = options;
    signal?.throwIfAborted();
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      const snakeCase = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      if (value !== undefined) search.set(snakeCase, value instanceof Date ? value.toISOString() : String(value));
    }
    const target = `${url.replace(/\/+$/, "")}${root}${path}${search.size > 0 ? `?${search}` : ""}`;
    const headers = { ...options.headers };
    if (method === "POST") headers["idempotency-key"] = idempotencyKey ?? crypto.randomUUID();
    let lost = false;
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(method, target, { ...options, headers });
      } catch (error) {
        if (!(error instanceof HeraldError)) throw error;
        if (mayBeGone && lost && error.status === 404) return undefined;
        if (file !== undefined || !isWorthRetrying(error) || tries > maxRetries) throw error;
        const waitMs = backoffMs(tries, error.retryAfter);
        if (waitMs > maxWaitMs) throw error;
        lost ||= error.status !== 429; // a 429 has done nothing
        await sleep(waitMs, signal);
      }
    }
  };

  const data =
    (method: Method) =>
    async <Row>(path: string, options?: Call, body?: unknown): Promise<Row> =>
      ((await call(method, path, { ...options, body })) as { data: Row } | undefined)?.data as Row;

  return {
    get: data("GET"),
    post: data("POST"),
    put: data("PUT"),
    patch: data("PATCH"),
    delete: data("DELETE"),
    /** The whole body: pages. */
    page: async <Page>(path: string, options?: Call) => (await call("GET", path, options)) as Page,
    /** A POST that answers a secret beside `data`, which gets the name of what it is. */
    create: async <Made>(name: keyof Made, path: string, options?: Call, body?: unknown): Promise<Made> => {
      const { data, ...secret } = (await call("POST", path, { ...options, body })) as { data: unknown };
      return { [name]: data, ...secret } as Made;
    },
    /** A DELETE without a body in its answer. If it was retried because its answer was lost, a 404 means it worked. */
    remove: async (path: string, options?: Call): Promise<void> => {
      await call("DELETE", path, { ...options, mayBeGone: true });
    },
    /** Sends a file; what a lost connection means is the caller's decision. */
    upload: async <Row>(path: string, file: FileBody, options: Call): Promise<Row> =>
      ((await call("PUT", path, { ...options, file })) as { data: Row }).data,
    /** An answer without an end; the signal ends it. */
    stream: async (path: string, options: Call) => (await call("GET", path, { ...options, stream: true })) as Response,
  };
};

export type Http = ReturnType<typeof createHttp>;

/** A path whose values are percent-encoded. */
export const path = (parts: TemplateStringsArray, ...values: string[]): string =>
  parts.reduce((text, part, index) => text + encodeURIComponent(values[index - 1] ?? "") + part);
