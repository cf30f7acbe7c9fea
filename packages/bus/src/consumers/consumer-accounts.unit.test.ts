import { expect, test } from "vitest";
import { consumerUser, renderConsumerAccount } from "../permissions/index.ts";
import { withAccount } from "./consumer-accounts.ts";

const block = (name: string, password = "x") => renderConsumerAccount(consumerUser(name, name), password);

test("an account is added, replaced and removed, and the others stay", () => {
  const both = withAccount(
    withAccount("# consumers\n", "consumers-a", block("consumers-a")),
    "consumers-b",
    block("consumers-b"),
  );
  expect(both).toBe(`# consumers\n${block("consumers-a")}\n${block("consumers-b")}\n`);
  const replaced = withAccount(both, "consumers-a", block("consumers-a", "y"));
  expect(replaced).toBe(`# consumers\n${block("consumers-b")}\n${block("consumers-a", "y")}\n`);
  expect(withAccount(replaced, "consumers-b", undefined)).toBe(`# consumers\n${block("consumers-a", "y")}\n`);
  expect(withAccount(both, "consumers-c", undefined)).toBe(both);
});

test("a file that does not end its last line stays readable", () => {
  expect(withAccount("# consumers", "consumers-a", block("consumers-a"))).toBe(
    `# consumers\n${block("consumers-a")}\n`,
  );
});
