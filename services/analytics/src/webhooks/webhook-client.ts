import * as http from "node:http";
import * as https from "node:https";
import {
  checkPublicEndpoint,
  createProxyAgent,
  notPublicText,
  type OutboundProxy,
  publicLookup,
  type Resolve,
  socketErrorText,
} from "@herald/kit";
import type { WebhookResponse } from "./webhook-attempt.ts";

/** Resolves to the problem of a webhook's URL; undefined when Herald may call the URL. */
export type CheckUrl = (url: string) => Promise<string | undefined>;

/** The caller's timeout is only a little longer. A name that does not resolve in time is checked when the webhook is called. */
const lookupTimeoutMs = 1_500;

/** Checks URLs when they are stored. Each request resolves and checks the name again. */
export const createCheckUrl = ({ anyHost, resolve }: { anyHost: boolean; resolve?: Resolve | undefined }): CheckUrl => {
  const lookup = publicLookup(resolve);
  return async (text) => {
    if (anyHost) {
      const url = new URL(text);
      if (!/^https?:$/.test(url.protocol)) return "must be an http or https URL";
      return url.username === "" && url.password === "" ? undefined : "may not carry a user";
    }
    const checked = checkPublicEndpoint(text);
    if (!checked.ok) return checked.problem;
    return new Promise((done) => {
      const timer = setTimeout(done, lookupTimeoutMs, undefined);
      lookup(checked.hostname, { all: true }, (error) => {
        clearTimeout(timer);
        done(error?.message === notPublicText ? notPublicText : undefined);
      });
    });
  };
};

type Headers = Readonly<Record<string, string>>;

export type WebhookClient = ReturnType<typeof createWebhookClient>;

type Options = {
  /** From the DNS lookup to the end of the response. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** The operator allows private addresses, any port, and HTTP. */
  readonly anyHost: boolean;
  /** Default: the system's resolver. */
  readonly resolve?: Resolve | undefined;
  /** For https. What is posted without TLS, in development alone, goes directly. */
  readonly proxy?: OutboundProxy | undefined;
};

/** Bytes of a response that are stored: enough for its error message. */
const storedBytes = 1_024;
/** Bytes that are read, so that the connection can be used again. A longer response closes it. */
const maxReadBytes = 65_536;
/** Receivers close idle connections after as little as five seconds. */
const idleMs = 4_000;

/** The beginning of a response, as text that any database and terminal accepts. */
const textOf = (chunks: readonly Buffer[]): string =>
  Buffer.concat(chunks)
    .subarray(0, storedBytes)
    .toString()
    .replaceAll(/[\p{Cc}\p{Cs}]+/gu, " ")
    .trim();

/**
 * Posts to URLs that projects chose: no redirects, bounded in time and bytes, and never to a private address. Not fetch or undici: neither
 * says whether a failed request had used an idle connection.
 */
export const createWebhookClient = ({ timeoutMs, connectTimeoutMs, anyHost, resolve, proxy }: Options) => {
  const lookup = anyHost ? undefined : publicLookup(resolve);
  const guard = lookup ? { lookup } : {};
  const agentOptions = { keepAlive: true, timeout: idleMs, maxFreeSockets: 64 };
  const agents = {
    "http:": new http.Agent(agentOptions),
    "https:": proxy
      ? createProxyAgent((server) => proxy.dialTo(server, lookup), agentOptions)
      : new https.Agent(agentOptions),
  };

  /** `stale`: the receiver closed the idle connection when it was used. */
  const attempt = (url: URL, headers: Headers, body: string, signal: AbortSignal) =>
    new Promise<WebhookResponse & { readonly stale?: boolean }>((done, reject) => {
      const options = { method: "POST", headers, agent: agents[url.protocol as keyof typeof agents], signal, ...guard };
      const request = (url.protocol === "https:" ? https : http).request(url, options);
      let answer: { status: number; retryAfter: string | undefined } | undefined;
      const chunks: Buffer[] = [];
      let bytes = 0;

      const clearTimers = () => {
        clearTimeout(total);
        clearTimeout(connecting);
      };
      const end = (problem = "the connection ended without an answer", stale = false) => {
        clearTimers();
        // A response counts by its status, even if its body is incomplete.
        done(answer ? { kind: "answered", ...answer, body: textOf(chunks) } : { kind: "unanswered", problem, stale });
      };
      const abort = (problem?: string) => {
        end(problem);
        request.destroy();
      };
      const total = setTimeout(() => abort(`no answer within ${timeoutMs / 1_000} s`), timeoutMs);
      const connecting = setTimeout(
        () => abort(`no connection within ${connectTimeoutMs / 1_000} s`),
        connectTimeoutMs,
      );

      request.on("socket", (socket) => {
        if (request.reusedSocket) clearTimeout(connecting);
        else socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => clearTimeout(connecting));
      });
      request.on("response", (response) => {
        answer = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
        response.on("data", (chunk: Buffer) => {
          if (bytes < storedBytes) chunks.push(chunk.subarray(0, storedBytes - bytes));
          bytes += chunk.length;
          if (bytes > maxReadBytes) abort();
        });
        for (const event of ["end", "error", "close"]) response.on(event, () => end());
      });
      request.on("error", (error: NodeJS.ErrnoException) => {
        if (!signal.aborted) return end(socketErrorText(error), request.reusedSocket && error.code === "ECONNRESET");
        clearTimers();
        reject(error);
      });
      request.end(body);
    });

  return {
    /** Rejects only when `signal` is aborted; failures of receiver and network are part of the response. */
    async post(url: string, headers: Headers, body: string, signal: AbortSignal): Promise<WebhookResponse> {
      signal.throwIfAborted();
      // Checked again: the URL may have been stored while any host was allowed, and a literal IP address needs no lookup.
      const checked = anyHost ? undefined : checkPublicEndpoint(url);
      if (checked?.ok === false) return { kind: "unanswered", problem: checked.problem };
      const all = { ...headers, "content-length": String(Buffer.byteLength(body)) };
      const response = await attempt(new URL(url), all, body, signal);
      const stale = response.kind === "unanswered" && response.stale === true;
      return stale ? attempt(new URL(url), all, body, signal) : response;
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
};
