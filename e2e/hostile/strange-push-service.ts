import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { generate } from "selfsigned";

const week = 7 * 86_400;

/** The answers, by the first part of an endpoint's path. */
const answers: Readonly<Record<string, Readonly<Record<string, string | number>>>> = {
  refuses: { ":status": 401 },
  forbids: { ":status": 403 },
  throttles: { ":status": 429, "retry-after": week },
  fails: { ":status": 500 },
  waits: { ":status": 503, "retry-after": week },
};

/**
 * A push service of a stranger's own, with a name and a certificate that the services trust, answering what hurts others most.
 * `env` is what a system needs to reach it.
 */
export async function startStrangePushService(name: string) {
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    curve: "P-256",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2 as const, value: name }] }],
  });
  const folder = await mkdtemp(join(tmpdir(), "herald-hostile-"));
  const authority = join(folder, "ca.pem");
  await writeFile(authority, cert);
  const came: Record<string, number> = {};
  const sessions = new Set<ServerHttp2Session>();
  const server = createSecureServer({ key, cert }, (request, response) => {
    const kind = request.url.split("/")[1] ?? "";
    came[kind] = (came[kind] ?? 0) + 1;
    const { ":status": status = 404, ...headers } = answers[kind] ?? {};
    response.writeHead(Number(status), headers).end();
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {}).on("close", () => sessions.delete(session));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: (kind: keyof typeof answers, at: number) => `https://${name}/${kind}/${at}`,
    came: (): Readonly<Record<string, number>> => came,
    env: {
      NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "other-hosts.ts")).href}`,
      NODE_EXTRA_CA_CERTS: authority,
      HERALD_HOSTILE_HOSTS: JSON.stringify({ [name]: port }),
      HERALD_DISPATCH_WEBPUSH_ANY_HOST: "true",
    },
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
