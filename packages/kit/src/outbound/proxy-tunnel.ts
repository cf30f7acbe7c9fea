import * as http from "node:http";
import * as https from "node:https";
import { isIP, type Socket } from "node:net";

/** A proxy, and the value of `proxy-authorization` for it. */
export type ProxyAccess = { readonly url: URL; readonly authorization: string | undefined };

/** The proxy gave no connection. The message does not name its address, its user or its password, because projects see it. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
}

const refusalOf = (status: number, authority: string, withUser: boolean): ProxyError => {
  // tinyproxy answers 401 to a wrong password.
  if (status === 407 || status === 401)
    return new ProxyError(`the proxy ${withUser ? "refuses Herald's" : "asks for a"} user and password (${status})`);
  const refused = status >= 400 && status < 500;
  return new ProxyError(
    `the proxy ${refused ? "refuses connections" : "gives no connection"} to ${authority} (${status})`,
  );
};

/**
 * Asks a proxy for a connection to a host and port by CONNECT (RFC 9110, 9.3.6). Resolves to a socket on which TLS with the server can
 * begin. Rejects with a ProxyError, or with the reason of `signal`; then it leaves no socket open.
 */
export function openTunnel(
  { url, authorization }: ProxyAccess,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const request = (url.protocol === "https:" ? https : http).request({
    hostname,
    // Otherwise Node expects a certificate for the name in the host header.
    servername: isIP(hostname) === 0 ? hostname : "",
    port: url.port,
    method: "CONNECT",
    path: authority,
    // A socket for this request alone: it becomes the connection to the server.
    agent: false,
    headers: { host: authority, ...(authorization !== undefined && { "proxy-authorization": authorization }) },
    signal,
  });
  // Node calls this for every status.
  request.once("connect", ({ statusCode = 0 }, socket: Socket, head) => {
    // For errors until TLS begins, which then reports them.
    socket.on("error", () => {});
    const opened = statusCode >= 200 && statusCode < 300;
    // In TLS the client speaks first.
    if (opened && head.length === 0) {
      socket.setNoDelay(true);
      return resolve(socket);
    }
    socket.destroy();
    reject(
      opened
        ? new ProxyError("the proxy does not answer as a proxy")
        : refusalOf(statusCode, authority, authorization !== undefined),
    );
  });
  request.on("error", (error: NodeJS.ErrnoException) => {
    if (signal.aborted) return reject(signal.reason);
    // Not the message, which shows addresses of the inner network.
    const { code = error.name } = error;
    reject(
      new ProxyError(
        code.startsWith("HPE_") ? "the proxy does not answer as a proxy" : `cannot reach the proxy: ${code}`,
      ),
    );
  });
  request.end();
  return promise;
}
