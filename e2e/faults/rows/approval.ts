import { NotificationApprovedV1, NotificationProposedV1 } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { eventsOf } from "../../harness/compare-events.ts";
import { sendSurely } from "../../harness/load.ts";
import { seed } from "../../harness/seed.ts";
import { pushesAndRepeats } from "../repeats.ts";
import { replicated } from "../replicated.ts";
import type { Row } from "../row.ts";
import { crowd, randomMoment } from "../trial.ts";

const devices = 1_100;
const limit = 1_000;
const killWithinMs = 300;
const finalWithinMs = 180_000;

export const approval: Row = {
  name: "approval",
  fault:
    "kill -9 of dispatch, gateway or registry, with two replicas, 20 times (short: 8), while a send is proposed, and while it is approved",
  pass: "nothing is sent before the approval; then each device once or marked; one event for each",
  fixture: replicated,
  run: async ({ long, use }) => {
    const { system } = await use(replicated);
    const rounds = long ? 10 : 4;
    const project = await system.project("Approved");
    await seed(system, project, devices, { prefix: crowd, topics: ["everyone"] });
    const projects = [{ id: project.id, role: "viewer", approve: true }];
    const { token } = await system.operator({ name: "Bob", role: "member", projects });
    const rule = { project: { approval: { devices: limit } } };
    expectStatus(await system.admin(`PATCH /projects/${project.id}`, { body: rule }), 200);

    const killedDuring = async <Result>(round: number, work: Promise<Result>): Promise<Result> => {
      const victim = system.services[(["dispatch", "gateway", "registry"] as const)[round % 3] ?? "dispatch"];
      const kill = async () => {
        await randomMoment(killWithinMs);
        await victim.kill();
        await victim.ready();
      };
      const [result] = await Promise.all([work, kill()]);
      return result;
    };
    const approve = (id: string) =>
      eventually(
        async () =>
          expectStatus(await system.admin(`POST /projects/${project.id}/notifications/${id}/approve`, { token }), 200),
        { timeoutMs: 60_000 },
      );

    const problems: string[] = [];
    const sums = { final: 0, lost: 0, repeated: { marked: 0, unmarked: 0 } };
    for (let round = 0; round < rounds; round++) {
      const sending = sendSurely(project, { title: `Proposed ${round}`, targets: ["topic:everyone"] });
      const id = await killedDuring(round, sending);
      const early = (await pushesAndRepeats(system, project, id, 0)).pushes.length;
      if (early > 0) problems.push(`${early} pushes before the approval`);
      await killedDuring(round + 1, approve(id));
      const { counts } = await project.final(id, finalWithinMs);
      const { lost, repeated } = await pushesAndRepeats(system, project, id, devices);
      sums.final += counts.devices - counts.pending;
      sums.lost += lost;
      sums.repeated.marked += repeated.marked;
      sums.repeated.unmarked += repeated.unmarked;
    }
    const events = [
      await eventsOf(system, project, NotificationProposedV1),
      await eventsOf(system, project, NotificationApprovedV1),
    ].map(({ length }) => length);
    if (events.some((count) => count !== rounds))
      problems.push(`${events.join(" and ")} events of ${rounds} proposals and approvals`);
    return { ...sums, sent: rounds * devices, recoveryMs: undefined, problems, notes: [] };
  },
};
