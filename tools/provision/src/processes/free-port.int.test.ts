import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "./free-port.ts";

const run = promisify(execFile);

test("no two processes are given the same port, and none a port that the system gives away", async () => {
  const script = `import { freePort } from ${JSON.stringify(new URL("free-port.ts", import.meta.url).href)};
    for (let count = 0; count < 30; count++) console.log(await freePort());
    await new Promise((resolve) => process.stdin.once("data", resolve));
    process.exit();`;
  const mine = await Promise.all(Array.from({ length: 30 }, () => freePort()));
  const others = Array.from({ length: 3 }, () => {
    const other = run(process.execPath, ["--input-type=module-typescript", "--eval", script]);
    let printed = "";
    const all = new Promise<number[]>((resolve) => {
      other.child.stdout?.on("data", (text: string) => {
        printed += text;
        const lines = printed.trim().split("\n");
        if (lines.length === 30) resolve(lines.map(Number));
      });
    });
    return { other, all };
  });
  const theirs = (await Promise.all(others.map(({ all }) => all))).flat();
  const ports = [...mine, ...theirs];
  expect(new Set(ports).size).toBe(120);
  for (const port of ports) expect(port).toBeLessThan(32_768);
  for (const { other } of others) other.child.stdin?.write("\n");
  await Promise.all(others.map(({ other }) => other));
});

test("a port that a server listens on is not given", async () => {
  const next = (await freePort()) + 1;
  const server = createServer().listen(next, "127.0.0.1");
  await once(server, "listening");
  await expect(freePort(next)).rejects.toThrow("EADDRINUSE");
  expect(await freePort()).not.toBe(next);
  server.close();
});

test("no port is given twice, because a server that restarts does not listen on its port for a moment", async () => {
  const count = 250; // more than a block has
  const ports = await Promise.all(Array.from({ length: count }, () => freePort()));
  expect(new Set(ports).size).toBe(count);
});
