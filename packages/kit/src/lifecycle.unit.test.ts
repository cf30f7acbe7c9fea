import { expect, test } from "vitest";
import { createLifecycle } from "./lifecycle.ts";
import { createLogger } from "./logger.ts";

const silent = () => {
  const lines: string[] = [];
  return {
    lines,
    log: createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } }),
  };
};

test("steps run one after the other, in the order in which they were added", async () => {
  const { log } = silent();
  const lifecycle = createLifecycle({ log, deadlineMs: 1_000 });
  const seen: string[] = [];
  for (const name of ["a", "b", "c"])
    lifecycle.onStop(name, async () => {
      seen.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${name} ends`);
    });
  expect(await lifecycle.stop("test")).toBe(true);
  expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("a stop runs once, however often it is asked for", async () => {
  const { log } = silent();
  const lifecycle = createLifecycle({ log, deadlineMs: 1_000 });
  let runs = 0;
  lifecycle.onStop("a", () => {
    runs++;
  });
  await Promise.all([lifecycle.stop("one"), lifecycle.stop("two")]);
  await lifecycle.stop("three");
  expect(runs).toBe(1);
});

test("a step that fails does not keep the others from running, and the stop was not clean", async () => {
  const { log, lines } = silent();
  const lifecycle = createLifecycle({ log, deadlineMs: 1_000 });
  let ran = false;
  lifecycle.onStop("bad", () => Promise.reject(new Error("no")));
  lifecycle.onStop("good", () => {
    ran = true;
  });
  expect(await lifecycle.stop("test")).toBe(false);
  expect(ran).toBe(true);
  expect(lines.join("")).toContain('"step":"bad"');
});

test("the deadline ends the stop, and the log names the step", async () => {
  const { log, lines } = silent();
  const lifecycle = createLifecycle({ log, deadlineMs: 20 });
  lifecycle.onStop("hangs", () => new Promise(() => {}));
  expect(await lifecycle.stop("test")).toBe(false);
  expect(lines.join("")).toContain('"step":"hangs"');
});
