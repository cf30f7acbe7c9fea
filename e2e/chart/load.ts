/**
 * Runs inside the cluster, in the simulators' image: sends one notification after another for SECONDS, and prints what happened as JSON.
 * Repeats a 503 with its key after Retry-After, as a client does. Needs nothing but Node.
 */
const { URL: url = "", TOKEN = "", BODY = "", SECONDS = "60" } = process.env;

const accepted: string[] = [];
const refused: string[] = [];
const others: string[] = [];

/** One notification, until it is accepted or fails for good. */
const send = async (key: string): Promise<void> => {
  for (let attempt = 0; attempt < 60; attempt++) {
    const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, "idempotency-key": key };
    const response = await fetch(`${url}/api/v1/notifications`, { method: "POST", headers, body: BODY });
    const text = await response.text();
    if (response.status === 202) {
      accepted.push((JSON.parse(text) as { data: { id: string } }).data.id);
      return;
    }
    const wait = Number(response.headers.get("retry-after"));
    if (response.status !== 503 || !(wait > 0)) {
      others.push(`${response.status} ${text.slice(0, 300)}`);
      return;
    }
    refused.push(key);
    await new Promise((resolve) => setTimeout(resolve, wait * 1_000));
  }
  others.push(`${key} was refused for a minute`);
};

const end = Date.now() + Number(SECONDS) * 1_000;
for (let sent = 0; Date.now() < end; sent++)
  await send(`load-${process.pid}-${sent}`).catch((error: Error) =>
    others.push(`${error.message} ${String(error.cause ?? "")}`),
  );
process.stdout.write(JSON.stringify({ accepted, refused: refused.length, others }));
