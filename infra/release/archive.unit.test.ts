import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { releasedCompose } from "./archive.ts";
import { type ImageReferences, imageNames } from "./images.ts";

const source = readFileSync(join(import.meta.dirname, "../../docker-compose.yml"), "utf8");
const images = Object.fromEntries(
  imageNames.map((name, at) => [name, `example.com/herald/${name}:1.2.3@sha256:${String(at).repeat(64)}`]),
) as ImageReferences;
type Service = Readonly<Record<string, unknown>> & { readonly image: string };
const servicesOf = (text: string): Record<string, Service> => parse(text, { merge: true }).services;

test("a released compose file differs from the tree's only in where the images come from", () => {
  const released = servicesOf(releasedCompose(source, images));
  const before = servicesOf(source);
  for (const [name, { build, pull_policy: _, image, ...service }] of Object.entries(before)) {
    const { image: own, ...others } = released[name] as Service;
    expect(others).toEqual(service);
    expect(own).toBe(
      build === undefined ? image : images[(build as { args: { SERVICE: keyof ImageReferences } }).args.SERVICE],
    );
  }
  expect(Object.keys(released)).toEqual(Object.keys(before));
});

test("a compose file that would still build something is no release", () => {
  expect(() => releasedCompose(source.replace("localhost/herald/bus:", "localhost/other/bus:"), images)).toThrow(
    "a line that no release can have: image: localhost/other/bus",
  );
  const twoLines = source.replace("build: *build-simulators", "build:\n      context: .");
  expect(() => releasedCompose(twoLines, images)).toThrow("a line that no release can have: build:");
});
