import { newProjectId } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { expect, test } from "vitest";
import { createProviderProblems } from "./provider-problems.ts";

const newProblems = () => {
  const lines: { readonly msg: string; readonly reason?: string }[] = [];
  const reported: (string | undefined)[] = [];
  const problems = createProviderProblems({
    projectId: newProjectId(new Date()),
    provider: "apns",
    version: "1",
    credentials: { report: async (_, __, problem) => void reported.push(problem?.reason) },
    known: [],
    now: () => new Date(),
    log: createLogger({
      service: "test",
      level: "warn",
      destination: { write: (line) => lines.push(JSON.parse(line)) },
    }),
  });
  return { problems, lines, reported };
};

test("a problem whose settings are replaced at once is in the log, though not in the record of the new settings", () => {
  const { problems, lines, reported } = newProblems();
  problems.found("127.0.0.1:443", { reason: "tls-refused", detail: "the handshake failed" });
  problems.close();
  problems.close();
  expect(lines).toMatchObject([{ msg: "the provider cannot be reached", reason: "tls-refused" }]);
  expect(reported).toEqual([]);
});

test("what is over before it is recorded is not in the log", () => {
  const { problems, lines } = newProblems();
  problems.found("127.0.0.1:443", { reason: "tls-refused", detail: "the handshake failed" });
  problems.over("127.0.0.1:443");
  problems.close();
  expect(lines).toEqual([]);
});
