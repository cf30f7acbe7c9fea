import assert from "node:assert/strict";
import { Herald, HeraldAdmin } from "@herald/client";
import { eventually } from "@herald/testing";

/** The output of `docker compose run --rm demo`. */
export type Demo = {
  readonly text: string;
  readonly project: string;
  readonly token: string;
  readonly gateway: string;
};

/** The address of the port for operators, and an operator's token. */
export type Administration = { readonly url: string; readonly token: string };

export type Run = (command: string, ...args: string[]) => Promise<string>;

const waits = { timeoutMs: 60_000 };

export const readDemo = (text: string): Demo => {
  const [, project = "", token = ""] = /Project (prj_\w+), token (hpt_\S+)/.exec(text) ?? [];
  const [, gateway = ""] = /(http:\/\/\S+)\/api\/v1/.exec(text) ?? [];
  assert.ok(project && token && gateway, `the demo printed something else:\n${text}`);
  return { text, project, token, gateway };
};

/** The four printed commands: register, send, show the push, open. */
const commandsOf = ({ text }: Demo): [string, string, string, string] => {
  const commands = text.split("\n").filter((line) => /^(curl|pushes=)/.test(line));
  assert.equal(commands.length, 4, text);
  return commands as [string, string, string, string];
};

/** Runs the printed commands like a user who copies them. */
export const sendAndOpen = async (demo: Demo, run: Run): Promise<void> => {
  const [register, send, arrived, open] = commandsOf(demo);
  const pushes = async () => (JSON.parse(await run("sh", "-c", arrived)) as { data: unknown[] }).data.length;
  const before = await pushes();
  assert.match(await run("sh", "-c", register), /"status":"active"/);
  assert.match(await run("sh", "-c", send), /"status":"accepted"/);
  await eventually(async () => assert.equal(await pushes(), before + 1), waits);
  assert.match(await run("sh", "-c", open), /^204/m);
};

/** Checks that an untrusted certificate is reported in all places, and that new settings release the waiting sends. */
export const refusedCertificate = async (demo: Demo, admin: Administration, run: Run): Promise<void> => {
  const [register, send, arrived] = commandsOf(demo);
  const herald = new Herald({ url: demo.gateway, token: demo.token });
  const { providers } = new HeraldAdmin(admin);
  // The new certificate authority is not the one in the project's settings.
  await run("docker", "compose", "exec", "-T", "simulators", "rm", "/data/identity.json");
  await run("docker", "compose", "restart", "simulators");
  await run("docker", "compose", "up", "--detach", "--wait");
  const { data: device } = JSON.parse(await run("sh", "-c", register)) as { data: { id: string } };
  const { data: notification } = JSON.parse(await run("sh", "-c", send)) as { data: { id: string } };

  await eventually(async () => {
    const { problems } = await providers.get(demo.project, "apns");
    assert.match(JSON.stringify(problems), /"reason":"certificate-untrusted"/);
  }, waits);
  await eventually(async () => {
    const trace = await herald.notifications.trace(notification.id, device.id);
    assert.match(JSON.stringify(trace), /cannot reach simulators/);
  }, waits);
  await eventually(async () => {
    const log = await run("docker", "compose", "logs", "--no-color", "dispatch");
    assert.match(log, /"reason":"certificate-untrusted".*"msg":"the provider cannot be reached"/);
  }, waits);
  const scrape = "exec 3<>/dev/tcp/127.0.0.1/9082; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
  const metrics = await run("docker", "compose", "exec", "-T", "dispatch", "bash", "-c", scrape);
  assert.match(metrics, /^herald_dispatch_unreachable_total\{.*reason="certificate-untrusted".*\} [1-9]/m);

  await run("docker", "compose", "run", "--rm", "demo");
  await eventually(async () => assert.match(await run("sh", "-c", arrived), new RegExp(notification.id)), waits);
};
