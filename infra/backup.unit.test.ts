import { spawn } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

/** infra/backup and infra/restore with a `docker` that only notes what runs: real shells, real signals. test:compose runs both on an engine. */

const stopped = ["analytics", "dispatch", "registry"];
/** Sends its input to the container, as `exec -T` and `run -T` do. Keeps a file in `running` for each service that runs, and waits, until it is told otherwise, where the test wants to send a signal. */
const docker = `#!/bin/sh
shift
asked="$*"
case $1 in
  exec) cat >/dev/null; echo 'two words' ;;
  stop) shift; for service in "$@"; do rm "running/$service"; done ;;
  run) case $asked in *" restore"*) cat >>restored ;; esac ;;
  up) for service in analytics dispatch gateway registry; do touch "running/$service"; done; echo 'Container Started' >&2 ;;
esac
case $asked in $STANDS_AT)
  touch reached
  until [ -e goes-on ]; do sleep 0.02; done ;;
esac
case $asked in *"bootstrap node"*) echo "$HERALD_NATS_PASSWORD" >password ;; esac
case $asked in $FAILS_AT) exit 65 ;; esac
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-backup-"));
});
afterAll(() => rm(folder, { recursive: true }));

let trees = 0;
/** A folder as of an installation, with its four services running. */
const makeTree = async (): Promise<string> => {
  const tree = join(folder, String(++trees));
  for (const path of ["infra", "bin", "running"]) await mkdir(join(tree, path), { recursive: true });
  for (const script of ["backup", "restore", "parts"])
    await cp(join(import.meta.dirname, script), join(tree, "infra", script));
  for (const service of ["gateway", ...stopped]) await writeFile(join(tree, "running", service), "");
  await writeFile(join(tree, ".env"), "HERALD_NATS_PASSWORD_ADMIN='two words'\n");
  await writeFile(join(tree, "bin/docker"), docker);
  await chmod(join(tree, "bin/docker"), 0o755);
  await mkdir(join(tree, "before"));
  for (const part of ["broker", ...stopped]) await writeFile(join(tree, "before", `${part}.backup`), `${part}\n`);
  return tree;
};

type At = { readonly standsAt?: string; readonly failsAt?: string };
/** Starts a script in a process group of its own, as a terminal does. */
const start = (tree: string, args: readonly string[], { standsAt = "", failsAt = "" }: At) => {
  const [script = "", ...more] = args;
  const child = spawn(join("infra", script), more, {
    cwd: tree,
    env: { PATH: `${join(tree, "bin")}:${process.env.PATH}`, STANDS_AT: standsAt, FAILS_AT: failsAt },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const ended = new Promise<{ code: number | null; signal: string | null; said: string }>((resolve) =>
    child.on("close", (code, signal) => resolve({ code, signal, said })),
  );
  return {
    pid: Number(child.pid),
    ended,
    closeOutput: () => [child.stdout, child.stderr].map((stream) => stream.destroy()),
  };
};
const runningIn = async (tree: string) => (await readdir(join(tree, "running"))).toSorted();
const reached = (tree: string) => eventually(() => readFile(join(tree, "reached")));

const all = ["analytics", "dispatch", "gateway", "registry"];
const codes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
const signals = Object.keys(codes) as (keyof typeof codes)[];
const steps = ["stop *", "*registry node*", "*dispatch node*", "*analytics node*", "*bootstrap node*"];
const atEachStep = signals.flatMap((signal) => steps.map((step) => [signal, step] as const));

test("a backup stops three services and starts them again", async () => {
  const tree = await makeTree();
  const { ended } = start(tree, ["backup", "after"], {});
  expect(await ended).toMatchObject({ code: 0, said: "Backed up into after.\n" });
  expect(await runningIn(tree)).toEqual(all);
  expect(await readFile(join(tree, "password"), "utf8")).toBe("two words\n");
});

test.each(atEachStep)("after %s at `docker compose %s` of a backup the services run again", async (signal, step) => {
  const tree = await makeTree();
  const { pid, ended } = start(tree, ["backup", "after"], { standsAt: step });
  await reached(tree);
  expect(await runningIn(tree)).toEqual(["gateway"]);
  process.kill(-pid, signal);
  expect(await ended).toMatchObject({ code: codes[signal] });
  expect(await runningIn(tree)).toEqual(all);
});

test.each(signals)("%s to the shell alone ends a backup after the part that is being written", async (signal) => {
  const tree = await makeTree();
  const { pid, ended } = start(tree, ["backup", "after"], { standsAt: "*dispatch node*" });
  await reached(tree);
  process.kill(pid, signal);
  await writeFile(join(tree, "goes-on"), "");
  expect(await ended).toMatchObject({ code: codes[signal] });
  expect(await readdir(join(tree, "after.unfinished"))).toEqual(["dispatch.backup", "registry.backup"]);
  expect(await runningIn(tree)).toEqual(all);
});

test("the services run again after the reader of the output has gone", async () => {
  const tree = await makeTree();
  const { pid, ended, closeOutput } = start(tree, ["backup", "after"], { standsAt: "*dispatch node*" });
  await reached(tree);
  closeOutput();
  process.kill(-pid, "SIGINT");
  await ended;
  await eventually(async () => expect(await runningIn(tree)).toEqual(all));
});

test.each(steps)("the services run again after `docker compose %s` of a backup failed", async (step) => {
  const tree = await makeTree();
  const { ended } = start(tree, ["backup", "after"], { failsAt: step });
  expect(await ended).toMatchObject({ code: 65 });
  expect(await runningIn(tree)).toEqual(all);
});

test("a backup whose services do not start again says so, and is no success", async () => {
  const tree = await makeTree();
  const { ended } = start(tree, ["backup", "after"], { failsAt: "up *" });
  const { code, said } = await ended;
  expect(code).toBe(69);
  expect(said).toContain("Container Started");
  expect(said).toContain("registry, dispatch and analytics do not all run");
});

test.each(signals.flatMap((signal) => ["*registry node*", "*bootstrap node*"].map((step) => [signal, step] as const)))(
  "after %s at `docker compose %s` of a restore nothing runs on half of the data, and the operator is told",
  async (signal, step) => {
    const tree = await makeTree();
    const { pid, ended } = start(tree, ["restore", "before"], { standsAt: step });
    await reached(tree);
    process.kill(-pid, signal);
    const { code, said } = await ended;
    expect(code).toBe(codes[signal]);
    expect(said).toContain("not finished, so gateway, registry, dispatch and analytics stay stopped");
    expect(await runningIn(tree)).toEqual([]);
  },
);

test("a refused restore says that the services stay stopped, and a finished one starts them", async () => {
  const tree = await makeTree();
  const refused = await start(tree, ["restore", "before"], { failsAt: "*registry node*" }).ended;
  expect(refused).toMatchObject({ code: 65 });
  expect(refused.said).toContain("stay stopped");
  expect(await runningIn(tree)).toEqual([]);
  for (const service of all) await writeFile(join(tree, "running", service), "");
  const { code, said } = await start(tree, ["restore", "before", "--replace"], {}).ended;
  expect(code).toBe(0);
  expect(said).not.toContain("stay stopped");
  // Each part's file, whole.
  expect(await readFile(join(tree, "restored"), "utf8")).toBe("registry\nregistry\ndispatch\nanalytics\nbroker\n");
  expect(await runningIn(tree)).toEqual(all);
});

test("an interrupted infra/init still gives operators a port of their own", async () => {
  const tree = await makeTree();
  await rm(join(tree, ".env"));
  await cp(join(import.meta.dirname, "init"), join(tree, "infra/init"));
  const openssl = join(tree, "bin/openssl");
  await writeFile(openssl, "#!/bin/sh\ntouch reached\nexec sleep 60\n", { mode: 0o755 });
  const { pid, ended } = start(tree, ["init"], {});
  await reached(tree);
  process.kill(-pid, "SIGINT");
  await ended;
  await rm(openssl);
  expect(await start(tree, ["init"], {}).ended).toMatchObject({ code: 0 });
  expect(await readFile(join(tree, ".env"), "utf8")).toMatch(/^HERALD_GATEWAY_ADMIN_PORT=8089$/m);
});
