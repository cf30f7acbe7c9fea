import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { images } from "@herald/provision";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const yamlIn = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => /\.ya?ml$/.test(name))
    .map((name) => `${folder}/${name}`);

/**
 * Not pinned yet: their digests have to be read from a registry, see CONTRIBUTING.md. They then stand behind the tag in every file below, and
 * here nothing.
 */
const notYet: readonly string[] = [images.nats, "caddy:2.10.2-alpine"];

const captures = (path: string, pattern: RegExp): string[] =>
  [...read(path).matchAll(pattern)].map(([, found = ""]) => found);

const usedActions = yamlIn(".github/workflows").flatMap((path) => captures(path, /uses: (.+)$/gm));

/** Of others: those that this tree builds have a name of this machine, or one that the user replaces. */
const usedImages = [
  ...[
    "docker-compose.yml",
    "tools/provision/docker-compose.yml",
    "infra/postgresql/compose.yaml",
    "infra/helm/evaluation.yaml",
    "infra/helm/herald/values.yaml",
  ].flatMap((path) => captures(path, /^ *image: (?:&\w+ )?(.+)$/gm)),
  // NATS' own chart puts the repository in front.
  ...captures("infra/helm/nats-values.yaml", /^ *image: \{ tag: (\S+) \}$/gm).map((tag) => `nats:${tag}`),
  ...captures("infra/postgresql/Dockerfile", /^FROM (\S+)/gm),
  ...captures("infra/Dockerfile", /^FROM (?:--\S+ )?(\S+)/gm).filter((from) => !["base", "runtime"].includes(from)),
].filter((image) => !/^(localhost\/|your-registry\.invalid\/|\*)/.test(image));

test("every action is pinned to a full commit, with its version beside it", () => {
  expect(usedActions.length).toBeGreaterThan(8);
  expect(usedActions.filter((action) => !/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
});

test("every image of others is pinned to a tag and its digest", () => {
  expect(usedImages.length).toBeGreaterThan(5);
  const unpinned = usedImages.filter((image) => !/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image));
  expect([...new Set(unpinned)]).toEqual(notYet);
});

test("one image has one digest", () => {
  const digests = new Map<string, Set<string>>();
  for (const image of usedImages) {
    const [name = "", digest = ""] = image.split("@");
    digests.set(name, (digests.get(name) ?? new Set()).add(digest));
  }
  expect([...digests].filter(([, found]) => found.size > 1)).toEqual([]);
});
