import { expect, test } from "vitest";
import { problem, startScriptedServer } from "../test/scripted-server.ts";
import { Herald } from "./herald.ts";

const token = "hpt_test";
type Step = Parameters<typeof startScriptedServer>[0][number];

/** Sends a body, and ends it or cuts the connection. */
const body =
  (text: string, ends = true): Step =>
  (response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(text, () => (ends ? response.end() : response.destroy()));
  };
const lines = (...ids: string[]) => ids.map((id) => `${JSON.stringify({ id })}\n`).join("");
const collect = async <Row>(rows: AsyncIterable<Row>): Promise<Row[]> => {
  const all: Row[] = [];
  for await (const row of rows) all.push(row);
  return all;
};

test("rows come once, whatever breaks in between", async () => {
  const server = await startScriptedServer([
    problem(503, "database-unavailable", { "retry-after": "0" }),
    body(`${lines("a", "b")}{"id":"c`, false),
    body(`${lines("c")}{"id":"d`),
    body(lines("d")),
  ]);
  const herald = new Herald({ url: server.url, token });
  const rows = await collect(herald.exports.devices({ platform: "ios", createdAfter: new Date(0), include: "keys" }));
  expect(rows.map(({ id }) => id)).toEqual(["a", "b", "c", "d"]);
  const queries = server.taken.map(({ url }) => Object.fromEntries(new URL(url, server.url).searchParams));
  const filters = { platform: "ios", created_after: "1970-01-01T00:00:00.000Z", include: "keys", format: "ndjson" };
  expect(queries).toEqual([filters, filters, { ...filters, after: "b" }, { ...filters, after: "c" }]);
});

test("what Herald refuses is thrown at once", async () => {
  const server = await startScriptedServer([problem(403, "forbidden")]);
  const herald = new Herald({ url: server.url, token });
  await expect(collect(herald.exports.opens())).rejects.toMatchObject({ slug: "forbidden", status: 403 });
  expect(server.taken).toHaveLength(1);
});

test("a connection that breaks again and again without a row in between is an error", async () => {
  const server = await startScriptedServer([body("", false)]);
  const herald = new Herald({ url: server.url, token, maxRetries: 0 });
  await expect(collect(herald.exports.devices())).rejects.toMatchObject({ slug: "unreachable" });
  expect(server.taken.length).toBeGreaterThan(1);
});

test("a CSV is whole records: a quoted cell may have line ends, and the header row comes once", async () => {
  const first = 'id,text\r\na,"x\r\n""y"""\r\n';
  const server = await startScriptedServer([body(`${first}b,"half`, false), body('b,"half\r\n"\r\nc,\r\n')]);
  const herald = new Herald({ url: server.url, token });
  const rows = await collect(herald.exports.lines("devices", "csv"));
  expect(rows).toEqual([
    { id: undefined, text: "id,text\r\n" },
    { id: "a", text: 'a,"x\r\n""y"""\r\n' },
    { id: "b", text: 'b,"half\r\n"\r\n' },
    { id: "c", text: "c,\r\n" },
  ]);
});

test("a record of many quotes that is not complete costs no more than its length", async () => {
  const cell = `"${'""'.repeat(200_000)}`;
  const server = await startScriptedServer([body(`id,text\r\na,${cell}`, false), body(`a,${cell}"\r\n`)]);
  const herald = new Herald({ url: server.url, token });
  const rows = await collect(herald.exports.lines("devices", "csv"));
  expect(rows.at(-1)?.text).toHaveLength(cell.length + 'a,"\r\n'.length);
});

test("a loop that is left closes the connection", async () => {
  const closed = Promise.withResolvers<void>();
  const server = await startScriptedServer([
    (response) => {
      response.once("close", () => closed.resolve());
      response.writeHead(200);
      response.write(lines("a", "b"));
    },
  ]);
  for await (const _ of new Herald({ url: server.url, token }).exports.devices()) break;
  await closed.promise;
});
