import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type Agent, request } from "node:https";
import { Readable } from "node:stream";

/** Statuses for which a Response takes no body. */
const withoutBody: readonly number[] = [204, 205, 304];

/** `fetch` for an https URL on the connections of an agent, which Node's own does not take. It follows no redirects. */
export const fetchViaAgent = async (agent: Agent, url: URL, options: RequestInit): Promise<Response> => {
  const asked = new Request(url, options);
  const body = Buffer.from(await asked.arrayBuffer());
  const sent = request(url, {
    agent,
    method: asked.method,
    headers: Object.fromEntries(asked.headers),
    signal: asked.signal,
  });
  // Before the answer `once` rejects, afterwards the body does.
  sent.on("error", () => {});
  sent.end(body.length > 0 ? body : undefined);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const { statusCode: status = 0, statusMessage: statusText = "", rawHeaders } = answer;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const stream = Readable.toWeb(answer) as ReadableStream;
  if (!withoutBody.includes(status)) return new Response(stream, { status, statusText, headers });
  await stream.cancel();
  return new Response(null, { status, statusText, headers });
};
