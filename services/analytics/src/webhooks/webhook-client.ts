import * as http from "node:http";
import * as https from "node:https";
import { checkPublicEndpoint, failureWords, publicLookup, type Resolve } from "@herald/kit";
import type { PostResult } from "./webhook-outcome.ts";

export type Post = {
  /** Posts a body once. Never rejects for what the receiver or the network did; rejects when `signal` is aborted. */
  send(url: string, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<PostResult>;
  close(): void;
};

export type PostOptions = {
  /** For the whole of it, from the look-up to the answer's headers and body. */
  readonly timeoutMs: number;
  /** Until the connection stands. */
  readonly connectTimeoutMs: number;
  /** The operator lets webhooks be anywhere, inside too, and without TLS. */
  readonly anyHost: boolean;
  /** Default: the system's resolver. */
  readonly resolve?: Resolve | undefined;
};

/** What is kept of an answer: enough to read what went wrong. */
const keptBytes = 1_024;
/** What is read of it, so that the connection can be used again. Past that it is cut. */
const readBytes = 65_536;
/** Receivers close idle connections after as little as five seconds; a post into one that is closing is made again. */
const idleMs = 4_000;

/** As text that any database and terminal takes. */
const cut = (chunks: readonly Buffer[]): string =>
  Buffer.concat(chunks)
    .subarray(0, keptBytes)
    .toString()
    .replaceAll(/[\p{Cc}\p{Cs}]+/gu, " ")
    .trim();

/** Posts to URLs that strangers gave: no redirects, bounded in time and bytes, and never to an address inside. */
export const createPost = ({ timeoutMs, connectTimeoutMs, anyHost, resolve }: PostOptions): Post => {
  const guard = anyHost ? {} : { lookup: publicLookup(resolve) };
  const kept = { keepAlive: true, timeout: idleMs, maxFreeSockets: 64 };
  const agents = { "http:": new http.Agent(kept), "https:": new https.Agent(kept) };

  const once = (url: URL, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal) =>
    new Promise<PostResult & { readonly stale?: boolean }>((resolve, reject) => {
      const options = { method: "POST", headers, agent: agents[url.protocol as keyof typeof agents], signal, ...guard };
      const request = (url.protocol === "https:" ? https : http).request(url, options);
      let answered: { status: number; retryAfter: string | undefined } | undefined;
      const chunks: Buffer[] = [];
      let bytes = 0;

      const end = (problem?: string, stale = false) => {
        clearTimeout(total);
        clearTimeout(connecting);
        // The status decides: a body that breaks off, or never ends, changes nothing about it.
        if (answered !== undefined) resolve({ kind: "answered", ...answered, body: cut(chunks) });
        else resolve({ kind: "unanswered", problem: problem ?? "the connection ended without an answer", stale });
      };
      const give = (problem: string) => {
        end(problem);
        request.destroy();
      };
      const total = setTimeout(() => give(`no answer within ${timeoutMs / 1_000} s`), timeoutMs);
      const connecting = setTimeout(() => give(`no connection within ${connectTimeoutMs / 1_000} s`), connectTimeoutMs);

      request.on("socket", (socket) => {
        const connected = () => clearTimeout(connecting);
        if (request.reusedSocket) connected();
        else socket.once(url.protocol === "https:" ? "secureConnect" : "connect", connected);
      });
      request.on("response", (response) => {
        answered = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
        response.on("data", (chunk: Buffer) => {
          if (bytes < keptBytes) chunks.push(chunk.subarray(0, keptBytes - bytes));
          bytes += chunk.length;
          if (bytes > readBytes) give("");
        });
        response.on("end", () => end());
        response.on("error", () => end());
        response.on("close", () => end());
      });
      request.on("error", (error: NodeJS.ErrnoException) => {
        if (signal.aborted) {
          clearTimeout(total);
          clearTimeout(connecting);
          reject(error);
          return;
        }
        end(failureWords(error), request.reusedSocket && error.code === "ECONNRESET");
      });
      request.end(body);
    });

  return {
    async send(url, headers, body, signal) {
      signal.throwIfAborted();
      // Stored while the operator let webhooks be anywhere, perhaps; and an address is never looked up.
      const checked = anyHost ? undefined : checkPublicEndpoint(url);
      if (checked?.ok === false) return { kind: "unanswered", problem: checked.problem };
      const all = { ...headers, "content-length": String(Buffer.byteLength(body)) };
      const result = await once(new URL(url), all, body, signal);
      // It closed the idle connection in the moment in which it was used: on a fresh one it may well answer.
      return result.kind === "unanswered" && result.stale === true ? once(new URL(url), all, body, signal) : result;
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
};
