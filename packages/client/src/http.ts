import { errorOf, HeraldError } from "./error.ts";

export type HeraldOptions = {
  /** The gateway's address, such as `https://herald.example.com`. */
  readonly url: string;
  /** A project token, `hpt_…`; for HeraldAdmin an operator's, `hop_…`, or the admin token. */
  readonly token?: string | undefined;
  /** For pages that Herald serves: the session of the cookie, instead of a token. Without a `csrfToken` it can only read and sign in. */
  readonly session?: { readonly csrfToken?: string | undefined } | undefined;
  /** The project that an operator's token or session acts for, `prj_…`. */
  readonly project?: string | undefined;
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Aborts every call that has no signal of its own. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit of each attempt, in milliseconds. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /** How often a call is retried. Default: 3. */
  readonly maxRetries?: number | undefined;
  /** The longest wait before a retry, in milliseconds. If Herald asks for a longer wait, the call fails at once. Default: 60 s. */
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
  /** Sent unchanged, in one attempt without a time limit. */
  readonly file?: FileBody;
  readonly stream?: boolean;
  readonly mayBeGone?: boolean;
};

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Callers decide about longer waits: a quota may ask for an hour. */
const defaultMaxWaitMs = 60_000;
const firstBackoffMs = 250;

/** Rejects with the signal's reason if the signal is aborted first. */
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

/** No answer, or 502 to 504: a proxy got no answer, or a part of Herald is unavailable. */
export const isTemporary = ({ status }: HeraldError): boolean =>
  status === undefined || [502, 503, 504].includes(status);

/** Also true for 429, and while the first attempt is still running. */
const isWorthRetrying = (error: HeraldError): boolean =>
  isTemporary(error) || error.status === 429 || error.slug === "request-in-progress";

/** Retry-After plus exponential backoff, with jitter so that clients do not retry at the same moment. */
export const backoffMs = (attempt: number, retryAfter = 0): number =>
  retryAfter * 1_000 + firstBackoffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);

const causeOf = (error: unknown): string => {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message || ((cause as { code?: string }).code ?? cause.name) : String(cause);
};

/**
 * Calls the routes below `root`. Every call is safe to repeat: a POST has an Idempotency-Key, all other methods are idempotent. So calls
 * without an answer are retried, and no notification is sent twice.
 */
export const createHttp = (options: HeraldOptions, root: "/api/v1" | "/admin/v1") => {
  const {
    url,
    token = "",
    session,
    project,
    fetch: custom,
    signal: common,
    timeoutMs = 30_000,
    maxRetries = 3,
    maxWaitMs = defaultMaxWaitMs,
  } = options;
  if (!URL.canParse(url)) throw new TypeError("url: must be an absolute URL, such as https://herald.example.com");
  // fetch would quote a password in its error, and a malformed token.
  const { username, password } = new URL(url);
  if (username + password !== "") throw new TypeError("url: must have no user and no password in it");
  if (session === undefined && !/^[!-~]+$/.test(token))
    throw new TypeError("token: must be a token of Herald's, without spaces");
  const credentials: Record<string, string> = session === undefined ? { authorization: `Bearer ${token}` } : {};
  if (session?.csrfToken !== undefined) credentials["herald-csrf"] = session.csrfToken;
  if (project !== undefined) credentials["herald-project"] = project;

  /** One attempt. For a stream it returns the response as soon as the headers arrive. */
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
        duplex: "half", // Node's fetch requires it if the body is a stream
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
    const { query = {}, idempotencyKey, signal = common, file, mayBeGone } = options;
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
        return await attempt(method, target, { ...options, signal, headers });
      } catch (error) {
        if (!(error instanceof HeraldError)) throw error;
        if (mayBeGone && lost && error.status === 404) return undefined;
        if (file !== undefined || !isWorthRetrying(error) || tries > maxRetries) throw error;
        const waitMs = backoffMs(tries, error.retryAfter);
        if (waitMs > maxWaitMs) throw error;
        lost ||= error.status !== 429; // a request that got a 429 had no effect
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
    /** A GET that returns the whole body, for pages. */
    page: async <Page>(path: string, options?: Call) => (await call("GET", path, options)) as Page,
    /** A POST whose answer has a secret beside `data`. Returns `data` under `name`, with the secret. */
    create: async <Made>(name: keyof Made, path: string, options?: Call, body?: unknown): Promise<Made> => {
      const { data, ...secret } = (await call("POST", path, { ...options, body })) as { data: unknown };
      return { [name]: data, ...secret } as Made;
    },
    /** A DELETE without a body in its answer. After a lost answer, a 404 on the retry means success. */
    remove: async (path: string, options?: Call): Promise<void> => {
      await call("DELETE", path, { ...options, mayBeGone: true });
    },
    /** Sends a file, without retries: the caller resumes a broken upload. */
    upload: async <Row>(path: string, file: FileBody, options: Call): Promise<Row> =>
      ((await call("PUT", path, { ...options, file })) as { data: Row }).data,
    /** An endless response; the signal ends it. */
    stream: async (path: string, options: Call) => (await call("GET", path, { ...options, stream: true })) as Response,
  };
};

export type Http = ReturnType<typeof createHttp>;

/** A path whose values are percent-encoded. */
export const path = (parts: TemplateStringsArray, ...values: string[]): string =>
  parts.reduce((text, part, index) => text + encodeURIComponent(values[index - 1] ?? "") + part);
