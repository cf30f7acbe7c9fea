import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";

const url = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);

/** Runs a service's main in its own process, because the tests check signals and exit codes. It loads only what it needs. */
const run = (createApp: string, imports = "") => {
  const script = `import { runService } from ${url("./run-service.ts")};
${imports}
await runService("test", ${createApp});`;
  const child = spawn(process.execPath, ["--conditions=@herald/source", "--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  const exited = once(child, "close").then(([code]) => code as number);
  const said = async (word: string) => {
    while (!output.includes(word)) await Promise.race([once(child.stdout, "data"), exited]);
  };
  return { child, exited, said, output: () => output };
};

const app = (stop: string) => `() => ({
  start: async () => { globalThis.timer = setInterval(() => {}, 1000); console.log("started"); },
  stop: async () => { console.log("stopping"); ${stop} },
})`;

test.each(["SIGTERM", "SIGINT"] as const)("%s stops the app, and the process ends well", async (signal) => {
  const { child, exited, said } = run(app("return true;"));
  await said("started");
  child.kill(signal);
  expect(await exited).toBe(0);
});

test("a stop that was not clean is seen in the exit code", async () => {
  const { child, exited, said } = run(app("return false;"));
  await said("started");
  child.kill("SIGTERM");
  expect(await exited).toBe(1);
});

test("a stop that throws ends the process, and the log says why", async () => {
  const { child, exited, said, output } = run(app('throw new Error("stuck");'));
  await said("started");
  child.kill("SIGTERM");
  expect(await exited).toBe(1);
  expect(output()).toContain("stuck");
});

test("a second signal ends the process at once", async () => {
  const { child, exited, said } = run(app("await new Promise(() => {});"));
  await said("started");
  child.kill("SIGTERM");
  await said("stopping");
  child.kill("SIGTERM");
  expect(await exited).toBe(1);
});

test("a wrong configuration is said in words, with an exit code of its own", async () => {
  const { exited, output } = run(
    "() => readConfig(z.object({ HERALD_X_PORT: variables.port() }), {})",
    `import { readConfig } from ${url("./config/read-config.ts")};
import * as variables from ${url("./config/variables.ts")};
import { z } from ${JSON.stringify(import.meta.resolve("zod"))};`,
  );
  expect(await exited).toBe(78);
  expect(output()).toMatch(/^test: The configuration has 1 problem:\n {2}HERALD_X_PORT: is not set; accepted: /);
  expect(output()).not.toContain("    at ");
});

test("a start that fails is logged", async () => {
  const { exited, output } = run('() => { throw new Error("no port hpt_0123456789abcdef"); }');
  expect(await exited).toBe(1);
  expect(output()).toContain('"msg":"did not start: no port ');
  expect(output()).not.toContain("hpt_0123456789abcdef");
});

test("an uncaught error ends the process with a line in the log, without its secrets", async () => {
  const { exited, output } = run(
    `() => ({ start: async () => { setTimeout(() => Promise.reject(new Error("Bearer planted-planted")), 1); setInterval(() => {}, 1000); }, stop: async () => {} })`,
  );
  expect(await exited).toBe(1);
  expect(output()).toContain('"msg":"crashed"');
  expect(output()).not.toContain("planted");
});
