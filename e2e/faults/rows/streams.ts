import type { Rule } from "@herald/simulators";
import { expectStatus, request } from "@herald/testing";
import { payloadOf } from "../../harness/simulators.ts";
import type { System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { crowd, providers, startTrial } from "../trial.ts";

type Break = {
  readonly name: string;
  readonly fault: string;
  readonly rules: readonly Omit<Rule, "provider">[];
  /** The provider did not process the cut requests: no push may come twice or be marked as a possible repeat. */
  readonly unprocessed: boolean;
};

const breaks: readonly Break[] = [
  {
    name: "goaway",
    fault: "GOAWAY every 50 streams, and one stream at first",
    rules: [{ goaway: 50 }, { oneStreamStart: true }],
    unprocessed: true,
  },
  {
    name: "refused-stream",
    fault: "REFUSED_STREAM for a fifth of the requests",
    rules: [{ tokenPrefix: crowd, rst: "REFUSED_STREAM", share: 0.2 }],
    unprocessed: true,
  },
  {
    name: "reset-stream",
    fault: "INTERNAL_ERROR during the answer to a tenth",
    rules: [{ tokenPrefix: crowd, status: 200, rst: "INTERNAL_ERROR", share: 0.1 }],
    unprocessed: false,
  },
  {
    name: "lost-socket",
    fault: "the connection lost during an answer, five times",
    rules: [{ tokenPrefix: crowd, status: 200, closeSocket: true, times: 5 }],
    unprocessed: false,
  },
];

/** The number of connections that the providers have accepted so far. */
async function connectionsOf({ simulators }: System): Promise<number> {
  const { connections } = expectStatus(await request(simulators.url, "GET /stats"), 200).body;
  return Object.values(connections as Record<string, { accepted: number }>).reduce(
    (sum, { accepted }) => sum + accepted,
    0,
  );
}

const breakRow = ({ name, fault, rules, unprocessed }: Break): Row => ({
  name,
  fault,
  pass: unprocessed
    ? "unprocessed pushes are sent again; no repeat"
    : "unprocessed pushes are sent again; unknown ones are marked",
  run: async ({ long, shared }) => {
    const system = await shared();
    const script = providers.flatMap((provider) =>
      rules.map((rule) => ({
        ...rule,
        ...(rule.status && { status: provider === "webpush" ? 201 : 200 }),
        provider,
      })),
    );
    const trial = await startTrial(system, { script });
    const before = await connectionsOf(system);
    const ids: string[] = [];
    for (let round = 0; round < (long ? 20 : 2); round++) ids.push(await trial.broadcastUnderWay());
    // While the fault lasts, one device in a hundred meets it twice and waits up to 20 s, and some meet it again.
    await system.simulators.script([]);
    await trial.recovered();
    const findings = await trial.finish({ timeoutMs: 120_000 });
    const rows = (await Promise.all(ids.map((id) => trial.project.deliveries(id)))).flat();
    const marked = rows.filter(({ possible_repeat }) => possible_repeat);
    if (unprocessed && marked.length > 0) trial.problem(`${marked.length} are marked as possible repeats`);
    if (unprocessed && findings.repeated.marked > 0) trial.problem(`${findings.repeated.marked} came twice`);
    if (!unprocessed && marked.length === 0) trial.problem("nothing was cut off: the row proves nothing");
    const cut = (await system.simulators.pushes()).filter(
      (push) => push.broken && ids.includes(payloadOf(push)?.notification_id),
    );
    const connections = (await connectionsOf(system)) - before;
    if (name === "goaway" && connections < (ids.length * trial.each) / 50)
      trial.problem(`${connections} connections only: the row proves nothing`);
    trial.note(`${cut.length} requests cut off, ${marked.length} deliveries marked, ${connections} connections`);
    return findings;
  },
});

export const streamRows: readonly Row[] = breaks.map(breakRow);
