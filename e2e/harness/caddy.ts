import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { cacheFolder, findBinary, provision, startProcess, unpackDebianPackages } from "@herald/provision";
import { eventually } from "@herald/testing";

/** The Caddy on PATH, otherwise Debian's package, unpacked once into the user's cache. Throws the reason if neither exists. */
const findCaddy = async (env: NodeJS.ProcessEnv): Promise<string> => {
  const found = await findBinary("caddy", env.PATH);
  if (found) return found;
  const progress = () => {};
  const folder = await provision({ cache: cacheFolder(env), name: "caddy-debian-1", progress }, async (building) => {
    await unpackDebianPackages(building, ["caddy"], { env, progress, ownSuite: true });
  });
  return join(folder, "root/usr/bin/caddy");
};

type CaddyOptions = {
  /** For its configuration, certificates and log. */
  readonly folder: string;
  /** The port of HERALD_TLS_NAME, of the redirection to it, and of the site for operators. */
  readonly ports: { readonly https: number; readonly http: number; readonly admin: number };
  /** What infra/Caddyfile reads. */
  readonly variables: Readonly<Record<string, string>>;
};

/** A real Caddy with infra/Caddyfile on other ports. Its own authority signs the certificate of localhost. */
export const startCaddy = async ({ folder, ports, variables }: CaddyOptions) => {
  const text = await readFile(join(import.meta.dirname, "../../infra/Caddyfile"), "utf8");
  const configuration = join(folder, "Caddyfile");
  const moved = text
    .replace("{\n", `{\n\thttp_port ${ports.http}\n\thttps_port ${ports.https}\n`)
    .replace(":8443 {", `:${ports.admin} {`);
  await writeFile(configuration, moved);
  const caddy = await startProcess({
    name: "caddy",
    command: await findCaddy(process.env),
    args: ["run", "--config", configuration, "--adapter", "caddyfile"],
    env: { ...variables, XDG_DATA_HOME: join(folder, "data"), XDG_CONFIG_HOME: folder },
    stopSignal: "SIGTERM",
    stopTimeoutMs: 5_000,
    output: { file: join(folder, "caddy.log") },
  });
  const authority = join(folder, "data/caddy/pki/authorities/local/root.crt");
  const ca = await eventually(() => readFile(authority, "utf8")).catch(async (error: Error) => {
    throw new Error(`Caddy made no certificate: ${error.message}\n${await caddy.lastWords()}`);
  });
  /** A request by TLS, whose body may be sent in parts, from any address of this machine. Resolves with the beginning of the answer. */
  const ask = async (url: string, options: Parameters<typeof request>[1] & { body?: AsyncIterable<Uint8Array> }) => {
    const { body, ...rest } = options;
    const asked = request(url, { ca, agent: false, ...rest });
    if (body === undefined) asked.end();
    else
      void (async () => {
        for await (const part of body) if (!asked.write(part)) await once(asked, "drain");
        asked.end();
      })();
    const [response] = await once(asked, "response");
    return response as import("node:http").IncomingMessage;
  };
  await eventually(async () => (await ask(`https://localhost:${ports.https}/livez`, {})).resume());
  return { ask, stop: () => caddy.stop() };
};
