import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { messages } from "./catalogue.ts";
import { type DataOf, defineMessage, type MessageContract } from "./envelope.ts";
import { durables, streams } from "./streams.ts";

const all: MessageContract[] = Object.values(messages);
const fixtures = new URL("../fixtures/", import.meta.url);

/** Whether a filter matches a subject without wildcards. */
const matches = (filter: string, subject: string): boolean => {
  const wanted = filter.split(".");
  const parts = subject.split(".");
  return (
    wanted.every((part, index) => part === ">" || part === "*" || part === parts[index]) &&
    (wanted.at(-1) === ">" ? parts.length >= wanted.length : parts.length === wanted.length)
  );
};

describe("a contract", () => {
  test.each(all.map((contract) => [contract.name, contract] as const))(
    "%s stands under its own name",
    (name, contract) => {
      expect(messages).toHaveProperty(name, contract);
    },
  );

  test.each(all.map((contract) => [contract.name, contract] as const))("%s is carried by one stream", (_, contract) => {
    const subject = contract.filter.replaceAll("*", "x");
    const carriers = Object.values(streams).filter((stream) =>
      stream.subjects.some((filter) => matches(filter, subject)),
    );
    expect(carriers).toHaveLength(1);
  });

  test("refuses text that is not a token in a subject", () => {
    const contract = defineMessage("Probe", "probe.:id", z.object({ id: z.string() }));
    for (const id of ["a.b", "*", ">", "a b", "", "a\0", "ü", "a\n"]) {
      expect(() => contract.subject({ id } as DataOf<typeof contract>)).toThrow(
        "Probe: id cannot be part of a subject",
      );
    }
    expect(contract.subject({ id: "A-z_9" })).toBe("probe.A-z_9");
  });
});

describe("golden messages", () => {
  // When a message gains a field, it gets a second golden message, `<name>.<field>.json`, beside the earlier one.
  const files = readdirSync(fixtures);
  const nameOf = (file: string) => file.split(".", 1)[0];

  test("exist for every message that was ever released", () => {
    expect([...new Set(files.map(nameOf))].toSorted()).toEqual(all.map(({ name }) => name).toSorted());
    expect(files).toEqual(expect.arrayContaining(all.map(({ name }) => `${name}.json`)));
  });

  test.each(files)("%s still parses, and means what it meant", (file) => {
    const golden: { subject: string; data: unknown } = JSON.parse(readFileSync(new URL(file, fixtures), "utf8"));
    const contract: MessageContract | undefined = all.find(({ name }) => name === nameOf(file));
    const data = contract?.schema.parse(golden.data);
    expect(data).toEqual(golden.data);
    expect(contract?.subject(data)).toBe(golden.subject);
  });
});

describe("durables", () => {
  const entries = Object.entries(durables);
  test.each(entries)("%s filters subjects of its stream, and its name is valid", (name, { stream, filters }) => {
    expect(name.length).toBeLessThanOrEqual(32);
    for (const filter of filters) {
      expect(
        streams[stream].subjects.some((subject) => matches(subject, filter.replaceAll("*", "x").replace(">", "x"))),
      ).toBe(true);
    }
  });

  test("of a work queue never overlap, because the server would refuse the second", () => {
    const queued = entries.filter(([, { stream }]) => streams[stream].retention === "workqueue");
    for (const [name, { filters }] of queued) {
      for (const [other, durable] of queued) {
        if (name === other) continue;
        const overlap = filters.some((filter) =>
          durable.filters.some((one) => matches(one, filter.replaceAll("*", "x"))),
        );
        expect(overlap, `${name} and ${other}`).toBe(false);
      }
    }
  });
});
