/** One HTTP answer. */
export type HttpAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined if it is empty or not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers that it asserts on
  readonly body: any;
};

export type Request = {
  readonly token?: string | undefined;
  /** Sent as JSON; a string is sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** `request("http://127.0.0.1:8080", "POST /api/v1/devices", { token, body })`. Throws only when there is no answer. */
export async function request(
  base: string,
  route: string,
  { token, body, headers }: Request = {},
): Promise<HttpAnswer> {
  const [method = "", path = ""] = route.split(" ");
  const response = await fetch(base + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000), // longer than any answer takes, including a 503 for a bus that hangs
  });
  const type = response.headers.get("content-type") ?? "";
  // An endless answer counts as complete when it starts.
  const endless = type.startsWith("text/event-stream");
  if (endless) await response.body?.cancel();
  const text = endless ? "" : await response.text();
  const json = /[/+]json\b/.test(type) && text !== "";
  return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
}

/** Returns the answer if its status is expected; else throws with the answer's text. */
export function expectStatus(answer: HttpAnswer, ...statuses: readonly number[]): HttpAnswer {
  if (statuses.includes(answer.status)) return answer;
  throw new Error(`answered ${answer.status} instead of ${statuses.join(" or ")}: ${answer.text}`);
}
