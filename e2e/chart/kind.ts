import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { readDemo, sendAndOpen } from "../compose/first-push.ts";
import { chart, root, run, startHelm, type Values } from "./helm.ts";
import { simulatorObjects, valuesForSimulators } from "./simulators.ts";

/**
 * The chart in a cluster of kind, as docs/how-to/deploy.md installs it for an evaluation, in a namespace that admits restricted pods alone:
 * real images, the bootstrap hook, a push and its open, and an upgrade from the newest tag while notifications are sent. Needs docker, kind
 * and kubectl on the PATH, and Go. `.github/workflows/ci.yml` runs it.
 */

const namespace = "herald";
const cluster = "herald-test";
const parts = ["bus", "gateway", "registry", "dispatch", "analytics", "simulators"];
const installWithinMs = 90_000;
const loadSeconds = 120;
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Runs a program and shows nothing unless it fails. */
const must = (command: string, args: readonly string[], input?: string): string => {
  try {
    return execFileSync(command, args, { input, encoding: "utf8", cwd: root, maxBuffer: 64_000_000, stdio: "pipe" });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}:\n${stdout}${stderr}`);
  }
};
const kubectl = (args: readonly string[], input?: string) =>
  must("kubectl", ["--context", `kind-${cluster}`, "--namespace", namespace, ...args], input);

/** Builds every image of a tree, and gives them to the cluster. */
const loadImages = (tree: string, tag: string): void => {
  const images = parts.map((part) => `localhost/herald/${part}:${tag}`);
  for (const [index, part] of parts.entries())
    must("docker", [
      "build",
      "-f",
      `${tree}/infra/Dockerfile`,
      "--build-arg",
      `SERVICE=${part}`,
      "-t",
      String(images[index]),
      tree,
    ]);
  must("kind", ["load", "docker-image", "--name", cluster, ...images]);
};

const withForwards = async <Result>(
  services: readonly string[],
  use: (ports: number[]) => Promise<Result>,
): Promise<Result> => {
  const ports = await Promise.all(services.map(() => freePort()));
  const forwards = services.map((service, index) =>
    spawn("kubectl", [
      "--context",
      `kind-${cluster}`,
      "--namespace",
      namespace,
      "port-forward",
      `service/${service}`,
      `${ports[index]}:${service === "simulators" ? 8090 : 80}`,
    ]),
  );
  try {
    for (const port of ports) await eventually(() => fetch(`http://127.0.0.1:${port}/livez`), { timeoutMs: 30_000 });
    return await use(ports);
  } finally {
    for (const forward of forwards) forward.kill();
  }
};

/** Makes the demo project from inside, and reads the commands of a first push. */
const demo = (gateway: number, simulators: number) => {
  const token = Buffer.from(
    kubectl(["get", "secret", "herald-gateway", "-o", "jsonpath={.data.admin-token}"]),
    "base64",
  );
  const env = [
    `HERALD_ADMIN_TOKEN=${token}`,
    "HERALD_DEMO_ADMIN=http://herald-gateway-admin",
    `HERALD_DEMO_GATEWAY=http://127.0.0.1:${gateway}`,
    `HERALD_DEMO_SIMULATORS=http://127.0.0.1:${simulators}`,
  ];
  return readDemo(kubectl(["exec", "deployment/simulators", "--", "env", ...env, "node", "app/dist/demo.js"]));
};

type Load = { accepted: string[]; refused: number; others: string[] };

/** Sends from inside of the cluster while `work` runs. */
const underLoad = async (token: string, body: string, work: () => Promise<unknown>): Promise<Load> => {
  const env = ["URL=http://herald-gateway", `TOKEN=${token}`, `BODY=${body}`, `SECONDS=${loadSeconds}`];
  const node = ["node", "--input-type=module-typescript", "-"];
  const args = [
    "--context",
    `kind-${cluster}`,
    "--namespace",
    namespace,
    "exec",
    "-i",
    "deployment/simulators",
    "--",
    "env",
    ...env,
    ...node,
  ];
  const child = spawn("kubectl", args, { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  child.stdin.end(readFileSync(join(import.meta.dirname, "load.ts"), "utf8"));
  await work();
  assert.equal(await ended, 0, "the load ended early");
  return JSON.parse(output) as Load;
};

const newestTag = async (): Promise<string | undefined> => {
  const { ok, stdout } = await run("git", ["describe", "--tags", "--match", "v*", "--abbrev=0"], process.env);
  return ok ? stdout.trim() : undefined;
};

/** A checkout of the newest tag, if it has a chart. */
const earlierTree = async (folder: string): Promise<string | undefined> => {
  const tag = await newestTag();
  if (tag === undefined) return undefined;
  const tree = join(folder, "earlier");
  must("git", ["worktree", "add", "--detach", tree, tag]);
  return tree;
};

const test = async (folder: string): Promise<void> => {
  const helm = await startHelm();
  const install = async (command: string, from: string, tag: string, values: Values = {}) => {
    const own = {
      images: { repository: "localhost/herald", tag },
      nats: { replicas: 1 },
      ...valuesForSimulators,
      ...values,
    };
    const target = ["--kube-context", `kind-${cluster}`, "--namespace", namespace, "--wait", "--timeout", "10m"];
    const begun = performance.now();
    await helm(command, "herald", from, ...target, ...(await helm.values(own)));
    return performance.now() - begun;
  };

  const earlier = await earlierTree(folder);
  loadImages(root, "new");
  if (earlier !== undefined) loadImages(earlier, "earlier");
  say("images are built and loaded");

  must("kubectl", ["--context", `kind-${cluster}`, "create", "namespace", namespace]);
  must("kubectl", [
    "--context",
    `kind-${cluster}`,
    "label",
    "namespace",
    namespace,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  const init = join(folder, "init");
  await mkdir(join(init, "infra"), { recursive: true });
  await cp(join(root, "infra/init"), join(init, "infra/init"));
  kubectl(["apply", "-f", "-"], must(join(init, "infra/init"), ["--kubernetes"]));
  kubectl(["apply", "-f", "infra/helm/evaluation.yaml"]);
  const simulators = simulatorObjects("localhost/herald/simulators:new", "http://herald-gateway");
  kubectl(["apply", "-f", "-"], simulators.map((object) => JSON.stringify(object)).join("\n---\n"));
  for (const one of ["statefulset/nats", "statefulset/mongo", "deployment/simulators"])
    kubectl(["rollout", "status", one, "--timeout=5m"]);
  kubectl(["wait", "--for=condition=complete", "job/mongo-users", "--timeout=5m"]);

  const from = earlier === undefined ? chart : join(earlier, "infra/helm/herald");
  const took = await install("install", from, earlier === undefined ? "new" : "earlier");
  say(`helm install --wait: ${(took / 1_000).toFixed(1)} s`);
  assert.ok(took < installWithinMs, `helm install took ${took} ms`);
  kubectl(["wait", "--for=condition=complete", "job/herald-bootstrap", "--timeout=1s"]);

  const shell = async (command: string, ...args: string[]) => must(command, args);
  const first = await withForwards(["herald-gateway", "simulators"], async ([gateway = 0, control = 0]) => {
    const made = demo(gateway, control);
    await sendAndOpen(made, shell);
    return made;
  });
  say("sent and opened a push");

  if (earlier === undefined)
    say("SKIPPED: the upgrade from an earlier version, because there is no tag; this version replaces itself");
  const [, body = ""] = /notifications[\s\S]*? -d '([^']+)'/.exec(first.text) ?? [];
  const load = await underLoad(first.token, body, () =>
    install("upgrade", chart, "new", { pods: { annotations: { run: "second" } } }),
  );
  assert.deepEqual(load.others, [], "every answer is 202, or 503 with Retry-After");
  assert.ok(load.accepted.length > 100, `only ${load.accepted.length} notifications were accepted`);
  await withForwards(["simulators"], async ([control = 0]) => {
    await eventually(
      async () => {
        const pushes = await (await fetch(`http://127.0.0.1:${control}/pushes`)).text();
        const counts = Map.groupBy(pushes.matchAll(/"notification_id":\s*"(\w+)"/g), ([, id = ""]) => id);
        const wrong = load.accepted.filter((id) => counts.get(id)?.length !== 1);
        assert.deepEqual(wrong, [], "each accepted notification arrives once");
      },
      { timeoutMs: 120_000 },
    );
  });
  say(
    `upgraded under load: ${load.accepted.length} accepted and arrived once, ${load.refused} times 503 with Retry-After`,
  );

  await helm(
    "rollback",
    "herald",
    "1",
    "--kube-context",
    `kind-${cluster}`,
    "--namespace",
    namespace,
    "--wait",
    "--timeout",
    "10m",
  );
  await withForwards(["herald-gateway", "simulators"], async ([gateway = 0, control = 0]) =>
    sendAndOpen(demo(gateway, control), shell),
  );
  say("rolled back, sent and opened a push");

  await helm("uninstall", "herald", "--kube-context", `kind-${cluster}`, "--namespace", namespace, "--wait");
  const kinds = "deployments,services,networkpolicies,poddisruptionbudgets,configmaps,secrets";
  const left = kubectl(["get", kinds, "-l", "app.kubernetes.io/instance=herald", "-o", "name"]);
  assert.equal(left, "", "uninstalling leaves nothing of the release");
  assert.match(kubectl(["get", "secrets", "-o", "name"]), /secret\/herald-registry/);
  await helm.remove();
  say("uninstalled; the Secrets are still there");
};

const folder = await mkdtemp(join(tmpdir(), "herald-kind-"));
try {
  must("kind", ["create", "cluster", "--name", cluster, "--wait", "3m"]);
  await test(folder);
  say("the chart works in kind");
} catch (error) {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  for (const shown of [
    ["get", "pods,jobs,events"],
    ["describe", "pods"],
    ["logs", "-l", "app.kubernetes.io/name=herald", "--tail=40", "--prefix"],
  ])
    say(
      (await run("kubectl", ["--context", `kind-${cluster}`, "--namespace", namespace, ...shown], process.env)).stdout,
    );
  process.exitCode = 1;
} finally {
  await run("kind", ["delete", "cluster", "--name", cluster], process.env);
  await run("git", ["worktree", "remove", "--force", join(folder, "earlier")], process.env, root);
  await rm(folder, { recursive: true, force: true });
}
