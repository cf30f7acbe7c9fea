import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answer, createHerald, problem, startGateway } from "../test/run-herald.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "herald-cli-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));
const herald = createHerald(() => home);

const revoked = answer(401, problem(401, "unauthenticated"));
const page = (next: string | null, ...ids: string[]) => answer(200, { data: ids.map((id) => ({ id })), next });
const ids = (...all: string[]) => all.map((id) => `${JSON.stringify({ id })}\n`).join("");
/** Sends part of an export, then breaks the connection. */
const cutAfter = (text: string) => (response: Parameters<typeof revoked>[0]) => {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  response.write(text, () => response.destroy());
};

test("a gateway that does not answer is given up after --timeout", async () => {
  const { url, asked } = await startGateway(() => {});
  const { exitCode, stderr } = await herald([
    "topic",
    "list",
    "--url",
    url,
    "--token",
    "x",
    "--timeout",
    "1",
    "--retries",
    "1",
  ]);
  expect([exitCode, stderr]).toEqual([7, expect.stringContaining(`${url} did not answer: within 1000 ms (timeout)`)]);
  expect(stderr).toContain("herald doctor");
  expect(asked).toHaveLength(2);
});

test("at a terminal, it says so when an answer takes long", async () => {
  const written = { stdout: "", stderr: "" };
  const said = Promise.withResolvers<void>();
  const watching = setInterval(() => written.stderr.includes("Waiting for ") && said.resolve(), 10);
  const { url } = await startGateway((response) => void said.promise.then(() => page(null)(response)));
  const ended = await createHerald(() => home, true)(["topic", "list", "--url", url, "--token", "x"], {}, written);
  clearInterval(watching);
  expect(ended.exitCode).toBe(0);
  // The table replaces the progress line.
  expect(ended.stderr).toMatch(new RegExp(`Waiting for ${url}….*There are none\\.\n$`, "s"));
});

test("a token that is revoked while a list is walked ends it after the rows that were read, with 3", async () => {
  const walk = async (...words: string[]) => {
    const { url } = await startGateway(page("two", "top_1", "top_2"), revoked);
    return herald(["topic", "list", "--all", "--url", url, "--token", "x", ...words]);
  };
  const table = await walk();
  expect(table).toMatchObject({ exitCode: 3, stdout: expect.stringContaining("top_2") });
  expect(table.stderr).toContain("(401 unauthenticated)");
  expect(table.stderr).toContain("herald login");
  // The JSON array stays open, so that no program takes the rows for the whole list.
  const { exitCode, stdout } = await walk("--json");
  expect([exitCode, stdout.trim()]).toEqual([3, '[{"id":"top_1"}\n,{"id":"top_2"}']);
});

test("an export that fails says how to resume it, and what was written is whole rows", async () => {
  const { url, asked } = await startGateway(cutAfter(`${ids("dev_1", "dev_2")}{"id":"de`), revoked);
  const file = join(home, "devices.ndjson");
  const words = ["device", "export", file, "--url", url, "--token", "x"];
  const failed = await herald(words);
  expect(failed).toMatchObject({ exitCode: 3, stdout: "" });
  expect(failed.stderr).toContain("Wrote 2 rows. `--after dev_2` resumes here.");
  expect(await readFile(file, "utf8")).toBe(ids("dev_1", "dev_2"));
  expect(asked[1]?.url).toContain("after=dev_2");

  const rest = await startGateway((response) => response.writeHead(200).end(ids("dev_3")));
  const resumed = await herald([
    "device",
    "export",
    file,
    "--after",
    "dev_2",
    "--url",
    rest.url,
    "--token",
    "x",
    "--json",
  ]);
  expect(JSON.parse(resumed.stdout)).toEqual({ file, rows: 1, last: "dev_3" });
  expect(await readFile(file, "utf8")).toBe(ids("dev_1", "dev_2", "dev_3"));
});

test("a failure as JSON says how to resume, too", async () => {
  const event = { id: "e1", type: "io.herald.topic.created.v1", timestamp: "2030-01-31T09:00:00Z", data: {} };
  const stream = cutAfter(`id: 17\ndata: ${JSON.stringify(event)}\n\n`);
  const { url } = await startGateway(stream, revoked);
  const { exitCode, stdout, stderr } = await herald(["events", "follow", "--json", "--url", url, "--token", "x"]);
  expect(JSON.parse(stdout)).toEqual({ ...event, position: "17" });
  const { error } = JSON.parse(stderr);
  expect([exitCode, error.slug, error.left]).toEqual([3, "unauthenticated", expect.stringContaining("--after 17")]);
});

test.each([
  ["notification export", "notifications", ["--label", "campaign=spring"], "label=campaign%3Aspring"],
  ["delivery export", "deliveries", ["--notification", "ntf_1", "--status", "failed"], "notification=ntf_1"],
  ["open export", "opens", ["--notification", "ntf_1"], "notification=ntf_1"],
])("%s writes every row of its kind", async (command, name, filter, query) => {
  const { url, asked } = await startGateway((response) => response.writeHead(200).end(ids("a", "b")));
  const words = [...command.split(" "), ...filter, "--created-after", "2030-01-01T00:00:00Z"];
  const { exitCode, stdout } = await herald([
    ...(name === "opens" ? words.slice(0, -2) : words),
    ...["--url", url, "--token", "x"],
  ]);
  expect([exitCode, stdout]).toEqual([0, ids("a", "b")]);
  const { pathname, search } = new URL(asked[0]?.url ?? "", url);
  expect([pathname, search]).toEqual([`/api/v1/exports/${name}`, expect.stringContaining(query)]);
});

test.each([
  ["send", "--file"],
  ["activity", "start", "order-1", "--file"],
  ["template", "push"],
])("a file that is not UTF-8 is refused instead of changed: %s", async (...words) => {
  const { url, asked } = await startGateway(answer(202, { data: {} }));
  const file = join(home, "latin-1.json");
  await writeFile(file, Buffer.from('{ "title": "Gr\u00fc\u00dfe", "targets": ["all"] }', "latin1"));
  const { exitCode, stderr } = await herald([...words, file, "--url", url, "--token", "x"]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${file}: is not UTF-8; save it as UTF-8.`)]);
  expect(asked).toEqual([]);
});
