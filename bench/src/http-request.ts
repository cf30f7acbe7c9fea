export type HttpRequest = {
  readonly method: "POST" | "PUT" | "PATCH";
  readonly to: URL;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
};

/** A complete HTTP/1.1 request with a JSON body, for {@link converse}. */
export const httpRequest = ({ method, to, path, headers = {}, body }: HttpRequest): string => {
  const json = JSON.stringify(body);
  const fields = {
    Host: to.host,
    ...headers,
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(json),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${json}`;
};
