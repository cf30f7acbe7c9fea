import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

/** Runs the command line, whose reader has closed its stdout or stderr before anything is written. */
const runClosed = async (closed: "stdout" | "stderr", words: readonly string[]) => {
  const child = spawn(
    process.execPath,
    ["--conditions=@herald/source", join(import.meta.dirname, "main.ts"), ...words],
    {
      env: { ...process.env, HOME: "/nonexistent" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  child[closed].destroy();
  const other = text(closed === "stdout" ? child.stderr : child.stdout);
  const [exitCode] = await once(child, "exit");
  return { exitCode, other: await other };
};

test.each([
  ["help", ["--help"], 0],
  ["help of a command", ["send", "--help"], 0],
  ["completion", ["completion", "bash"], 0],
  ["a finding of the doctor", ["doctor", "--url", "http://127.0.0.1:9"], 0],
])("ends silently when its output is closed: %s", async (_, words, exitCode) => {
  expect(await runClosed("stdout", words)).toEqual({ exitCode, other: "" });
});

test.each([
  ["a wrong command", ["frob"], 2],
  ["no answer", ["device", "list", "--url", "http://127.0.0.1:9", "--token", "x", "--retries", "0"], 7],
])("keeps its exit code when nobody reads the error: %s", async (_, words, exitCode) => {
  expect(await runClosed("stderr", words)).toEqual({ exitCode, other: "" });
});
