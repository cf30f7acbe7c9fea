import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { ArgumentError, parseConsumerArguments } from "./consumer-arguments.ts";

const [one, two] = [newProjectId(new Date()), newProjectId(new Date())];

test.each([
  [["--project", one], [`push.evt.v1.${one}.>`]],
  [
    ["--project", one, "--project", two, "--event", "io.herald.topic.created.v1"],
    [`push.evt.v1.${one}.topic.created`, `push.evt.v1.${two}.topic.created`],
  ],
  [
    ["--project", "*", "--project", one, "--event", "io.herald.notification.opened.v1"],
    ["push.evt.v1.*.notification.opened"],
  ],
])("add with %j reads %j", (args, filters) => {
  expect(parseConsumerArguments(["add", "warehouse", ...args])).toEqual({
    verb: "add",
    durable: "consumers-warehouse",
    filters,
    from: "all",
  });
});

test("a replay begins at a time", () => {
  expect(parseConsumerArguments(["replay", "a", "--from", "2026-11-21T08:00:00Z"])).toEqual({
    verb: "replay",
    durable: "consumers-a",
    from: new Date("2026-11-21T08:00:00Z"),
  });
});

test.each([
  [[], "a name is"],
  [["add", "Warehouse", "--project", one], "a name is"],
  [["add", "a.b", "--project", one], "a name is"],
  [["add", "x".repeat(23), "--project", one], "a name is"],
  [["add", "opens", "--project", one], "Herald's own"],
  [["add", "a", "b", "--project", one], "one name at a time"],
  [["add", "a"], "whose events?"],
  [["add", "a", "--project", "prj_1.>"], "not the id of a project: prj_1.>"],
  [["add", "a", "--project", one, "--event", ">"], "event not found: >"],
  [["add", "a", "--project", one, "--from", "yesterday"], "is not a time"],
  [["add", "a", "--what"], "--what"],
  [["replay", "a"], "--from"],
  [["drop", "a"], 'there is no "drop"'],
])("%j is refused: %s", (args, words) => {
  expect(() => parseConsumerArguments(args)).toThrow(ArgumentError);
  expect(() => parseConsumerArguments(args)).toThrow(words);
});
