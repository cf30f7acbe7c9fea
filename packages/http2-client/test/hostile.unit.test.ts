import { describe, expect, it } from "vitest";
import { createFixture, push } from "./fixture.ts";
import { createDice, fatal, mangled } from "./mangled-answers.ts";

/** Broken or hostile peers: every request gets an outcome, and the transport keeps working. */
const { serve, connect } = createFixture();

describe("mangled answers", () => {
  it("classifies thousands, keeps its memory, and serves the next request", async () => {
    const rounds = process.env.HERALD_TEST_LONG ? 40 : 10;
    const dice = createDice(20_260_101);
    let good = false;
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId }) {
        if (good) return peer.answer(streamId);
        const kind = dice.below(200) === 0 ? fatal : mangled;
        kind[dice.below(kind.length)]?.(peer, streamId, dice);
      },
    });
    const transport = connect(server, { requestTimeoutMs: 1_000, pingTimeoutMs: 500 });
    const seen: Record<string, number> = {};
    const round = async () => {
      const answers = await Promise.all(Array.from({ length: 250 }, (_, index) => transport.send(push(`m-${index}`))));
      for (const { kind } of answers) seen[kind] = (seen[kind] ?? 0) + 1;
    };
    for (let done = 0; done < rounds; done++) await round();
    expect(Object.values(seen).reduce((sum, count) => sum + count, 0)).toBe(250 * rounds);
    expect(seen.answered).toBeGreaterThan(25 * rounds);
    expect(seen.unknown).toBeGreaterThan(25 * rounds);
    good = true;
    await expect.poll(async () => (await transport.send(push("good"))).kind, { timeout: 15_000 }).toBe("answered");
  }, 60_000);
});

describe("requests that HTTP/2 cannot carry", () => {
  it.each([
    ["a line break in a value", { headers: { "apns-topic": "a\r\nx: y" } }],
    ["a NUL in a value", { headers: { "apns-topic": "a\0x\0y" } }],
    ["a value that is not ASCII", { headers: { "apns-topic": "żółw" } }],
    ["a name in capitals", { headers: { "Apns-Topic": "a" } }],
    ["a pseudo header", { headers: { ":status": "200" } }],
    ["a header of the connection", { headers: { connection: "close" } }],
    ["a path with a space", { path: "/3/device/a b" }],
    ["a path with a NUL", { path: "/3/device/a\0:authority\0evil" }],
    ["a path that is not one", { path: "https://elsewhere.example/" }],
  ])("refuses %s, and nothing else suffers", async (_, part) => {
    const server = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) });
    const transport = connect(server);
    const [bad, good] = await Promise.allSettled([
      transport.send({ ...push("bad"), ...part }),
      transport.send(push("good")),
    ]);
    expect(bad).toMatchObject({ status: "rejected", reason: expect.any(TypeError) });
    expect(good).toMatchObject({ status: "fulfilled", value: { kind: "answered" } });
    expect(server.peers[0]?.opened).toBe(1);
  });
});
