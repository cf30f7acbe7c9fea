import type { Provider } from "@herald/contracts";
import {
  createDice,
  fatal,
  mangled as mangledFrames,
  type PeerScript,
  startStrictServer,
} from "@herald/http2-client/testing";
import fc from "fast-check";
import { mangled } from "./mangle.ts";

/** Bodies of each provider. */
const bodies: Record<Provider, readonly unknown[]> = {
  apns: [
    { reason: "Unregistered", timestamp: 1_900_000_000_000 },
    { reason: "BadDeviceToken" },
    { reason: "TooManyRequests" },
  ],
  fcm: [
    { name: "projects/herald-e2e/messages/0:1500415314455276" },
    {
      error: {
        code: 404,
        message: "Requested entity was not found.",
        status: "NOT_FOUND",
        details: [{ "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: "UNREGISTERED" }],
      },
    },
    {
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "3s" }],
      },
    },
  ],
  webpush: [{ code: 410, errno: 106, error: "Gone", message: "unsubscribed", more_info: "https://push.example/" }],
};

/** 401 and 403 are rare: they pause a project, and then no requests follow. */
const statuses = [
  200, 200, 200, 201, 202, 204, 301, 307, 400, 400, 404, 404, 405, 408, 410, 410, 413, 421, 422, 425, 500, 502, 503,
  504, 599,
];
const rare = [401, 403, 418, 429, 451, 505, 511];

const oddTimes = [
  ...["", " ", "0", "-1", "1", "1.5", "1e9", "0x10", "Infinity", "NaN", "soon", "9".repeat(30), "1, 2", "1;2", "+1"],
  ...["Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 99 Foo 9999 99:99:99 GMT", "2030-01-01T00:00:00Z", "\t1", "１"],
];
/** Retry-After is rare: it may pause requests to the whole server. */
const headers = fc.dictionary(
  fc.constantFrom(
    "retry-after",
    "content-type",
    "content-length",
    "apns-id",
    "apns-unique-id",
    "location",
    "date",
    "x-a",
    "set-cookie",
  ),
  fc.oneof(fc.constantFrom(...oddTimes), fc.string({ maxLength: 60 }), fc.constant("x".repeat(4_000))),
  { maxKeys: 3 },
);

type Answer = { readonly status: string; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };

const answerOf = (provider: Provider): fc.Arbitrary<Answer> =>
  fc.record({
    status: fc.oneof(
      { weight: 60, arbitrary: fc.constantFrom(...statuses).map(String) },
      { weight: 1, arbitrary: fc.constantFrom(...rare).map(String) },
      { weight: 3, arbitrary: fc.constantFrom("", "0", "20", "2000", "099", "-200", "abc", "600", "999", "1e2") },
    ),
    headers,
    body: fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(...bodies[provider]).chain(mangled) },
      { weight: 5, arbitrary: fc.constantFrom(...bodies[provider]).map((body) => Buffer.from(JSON.stringify(body))) },
      { weight: 2, arbitrary: fc.constant(Buffer.alloc(0)) },
      { weight: 1, arbitrary: fc.constantFrom(60_000, 300_000).map((size) => Buffer.alloc(size, "[")) },
    ),
  });

/** A provider with broken answers until `mend` is called. */
export async function startMangler(provider: Provider, seed: number) {
  const dice = createDice(seed);
  const answers = fc.sample(answerOf(provider), { numRuns: 2_000, seed });
  let answered = 0;
  let well = false;
  const onRequest: PeerScript["onRequest"] = (peer, { streamId: id, body }) => {
    // Other tests cover the answers of Google's token endpoint.
    if (body.startsWith("grant_type=")) {
      peer.answer(id, 200, JSON.stringify({ access_token: "ya29.mangled", expires_in: 3_600, token_type: "Bearer" }));
      return;
    }
    if (well && provider === "apns")
      return peer.headers(
        id,
        [
          [":status", "200"],
          ["apns-id", "1"],
        ],
        true,
      );
    if (well) {
      peer.answer(id, provider === "webpush" ? 201 : 200, provider === "fcm" ? JSON.stringify(bodies.fcm[0]) : "");
      return;
    }
    answered++;
    // One answer in eight breaks HTTP/2 for its stream, and one in 400 for its connection.
    const lot = dice.below(400);
    const frames = lot === 0 ? fatal : lot < 50 ? mangledFrames : undefined;
    if (frames) {
      frames[dice.below(frames.length)]?.(peer, id, dice);
      return;
    }
    const answer = answers[answered % answers.length];
    if (!answer) return;
    const fields = Object.entries(answer.headers).map(([name, value]): [string, Buffer] => [name, Buffer.from(value)]);
    peer.headers(id, [[":status", answer.status], ...fields], answer.body.length === 0);
    if (answer.body.length > 0) peer.data(id, answer.body, true);
  };
  const server = await startStrictServer({ settings: [], onRequest });
  return {
    origin: server.origin,
    ca: server.ca,
    answered: () => answered,
    mend: () => {
      well = true;
    },
    close: server.close,
  };
}
