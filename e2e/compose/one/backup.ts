import assert from "node:assert/strict";
import { appendFile, cp, mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Herald } from "@herald/client";
import { freePort, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { must } from "../../../infra/release/must.ts";
import { shellBlocks } from "../../harness/shell-blocks.ts";
import type { Demo } from "../first-push.ts";
import { type Docker, type OneContainer, pipe, startOne, untilReady, waits } from "./container.ts";

type Given = {
  readonly one: OneContainer;
  readonly docker: Docker;
  readonly env: NodeJS.ProcessEnv;
  readonly tree: string;
  readonly image: string;
  readonly options: readonly string[];
  readonly demo: Demo;
  readonly token: string;
  readonly say: (line: string) => void;
};

const total = async (herald: Herald): Promise<number> =>
  (await herald.notifications.dryRun({ title: "All", targets: ["all"] })).devices.total;

/** Backs up while it is interrupted, restores into a new container, and leaves for compose as the page says. */
export const backupAndRestore = async (given: Given): Promise<void> => {
  const { one, docker, env, tree, demo, say } = given;
  const file = join(tree, "herald.backup");
  const client = await startProcess({
    name: "backup",
    command: "sh",
    args: ["-c", `exec docker exec ${one.name} backup > ${file}.broken`],
    env,
    stopSignal: "SIGINT",
    stopTimeoutMs: 10_000,
    output: { file: `${file}.log` },
  });
  await eventually(async () => assert.match(await one.exec("ls", "/data"), /^backup.unfinished$/m), waits);
  await client.stop();
  await untilReady(one);
  const backedUp = await eventually(async () => {
    const result = await pipe(env, `docker exec ${one.name} backup > ${file}`);
    assert.equal(result.code, 0, result.said);
    return result;
  }, waits);
  assert.match(backedUp.said, /backed up, with the keys/);
  say(
    `a backup that Ctrl-C ended left everything running; the next one has ${Math.round((await stat(file)).size / 1e6)} MB`,
  );

  const name = `${one.name}-restored`;
  const other = await startOne(docker, { name, image: given.image, volume: name, options: given.options });
  await untilReady(other);
  const restore = (from: string, option = "") => pipe(env, `docker exec -i ${name} restore ${option} < ${from}`);
  const half = Math.floor((await stat(file)).size / 2);
  await must("sh", ["-c", `head -c ${half} ${file} > ${file}.part`], { cwd: tree, env });
  assert.match((await restore(`${file}.part`)).said, /this is no complete backup; nothing was changed/);
  const refused = await restore(file);
  if (refused.code !== 0) {
    assert.match(refused.said, /restore with --replace[\s\S]*nothing was changed, and all parts run again/);
    const replaced = await restore(file, "--replace");
    assert.equal(replaced.code, 0, replaced.said);
  }
  await untilReady(other);
  const restored = new Herald({ url: other.url, token: demo.token, maxRetries: 8 });
  const before = new Herald({ url: one.url, token: demo.token, maxRetries: 8 });
  assert.equal(await total(restored), await total(before));
  const sent = await restored.notifications.send({ title: "Restored", targets: [`token:${"c0ffee".padEnd(64, "0")}`] });
  await sent.completed();
  await other.kill();
  await other.start();
  await untilReady(other);
  const again = await restored.notifications.send({
    title: "Restored",
    targets: [`token:${"c0ffee".padEnd(64, "0")}`],
  });
  assert.equal((await again.completed()).counts?.accepted, 1, "providers' credentials can be read");
  await other.remove();
  say("restored into a new container, which sends");
  if (process.env.HERALD_TEST_ONLY !== "kills") await leaveForCompose(given, file);
};

/** The commands of the page, in a checkout whose project has another name. */
const leaveForCompose = async (given: Given, file: string): Promise<void> => {
  const { docker, env, tree, image, options, one, demo, say } = given;
  const page = await readFile(join(import.meta.dirname, "../../../docs/how-to/one-container.md"), "utf8");
  const [leave = "", back = ""] = shellBlocks(page, "When to leave it");
  const [unpack = "", restore = ""] = leave.split(/^(?=infra\/restore)/m);
  // The images that compose would build or pull, of the same programs; what these have in common is built.
  for (const service of ["bus", "gateway", "registry", "dispatch", "analytics"])
    await must(
      "docker",
      [
        "build",
        "--quiet",
        "--file",
        "infra/Dockerfile",
        "--build-arg",
        `SERVICE=${service}`,
        "--tag",
        `localhost/herald/${service}:${one.name}`,
        ".",
      ],
      { cwd: tree, env },
    );
  const home = join(tree, "compose");
  await mkdir(home);
  for (const path of ["docker-compose.yml", "infra"]) await cp(join(tree, path), join(home, path), { recursive: true });
  const own = { ...env, COMPOSE_PROJECT_NAME: `${one.name}-compose`, HERALD_VERSION: one.name };
  const here = { cwd: home, env: own };
  const gateway = `127.0.0.1:${await freePort()}`;
  try {
    await cp(file, join(home, "herald.backup"));
    await must("sh", ["-ec", unpack], here);
    for (const [part, port] of [
      ["GATEWAY", gateway],
      ["GATEWAY_ADMIN", `127.0.0.1:${await freePort()}`],
      ["NATS", `127.0.0.1:${await freePort()}`],
    ] as const)
      await appendFile(join(home, ".env"), `HERALD_PUBLISH_${part}=${port}\n`);
    await must("sh", ["-ec", restore], here);
    const herald = new Herald({ url: `http://${gateway}`, token: demo.token, maxRetries: 8 });
    const before = new Herald({ url: one.url, token: demo.token, maxRetries: 8 });
    assert.equal(await total(herald), await total(before));
    say("restored into compose, with all devices");

    await must("sh", ["-ec", back], here);
    const name = `${one.name}-back`;
    const returned = await startOne(docker, { name, image, volume: name, options });
    await untilReady(returned);
    const { code, said } = await pipe(env, `docker exec -i ${name} restore --replace < ${join(home, "herald.backup")}`);
    assert.equal(code, 0, said);
    await untilReady(returned);
    assert.equal(await total(new Herald({ url: returned.url, token: demo.token, maxRetries: 8 })), await total(before));
    await returned.remove();
    say("and back into one container");
  } finally {
    await must("docker", ["compose", "--profile", "*", "down", "--volumes"], here).catch(() => {});
    await docker(
      "image",
      "rm",
      "--force",
      ...["bus", "gateway", "registry", "dispatch", "analytics"].map(
        (service) => `localhost/herald/${service}:${one.name}`,
      ),
    ).catch(() => {});
  }
};
