import { type DataOf, NotificationDismissedV1, NotificationOpenedV1, NotificationReceivedV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { eventsOf } from "../../harness/compare-events.ts";
import { compareStatistics } from "../../harness/compare-statistics.ts";
import { deliveryKey } from "../../harness/ledger.ts";
import { sendSurely } from "../../harness/load.ts";
import type { Project } from "../../harness/project.ts";
import { type Reported, type ReportLoad, startReports } from "../../harness/report-load.ts";
import { seed } from "../../harness/seed.ts";
import { type System, serviceNames } from "../../harness/system.ts";
import { replicated } from "../replicated.ts";
import type { Row } from "../row.ts";
import { platforms, providers, randomMoment, startTrial } from "../trial.ts";

/** Devices of each platform that get the broadcast, and that get the direct send. */
const [crowdOfEach, directOfEach] = [40, 10];
const buttons = [
  { id: "track", title: "Track" },
  { id: "later", title: "Later", opens: false },
];
/** With a share, a hash decides about each device. */
const content = { receipts: 0.5, buttons };
const countedWithinMs = 90_000;

const seedCrowd = async (system: System, project: Project): Promise<string[]> => {
  const capabilities = ["draws", "receipts", "buttons"] as const;
  const direct: string[] = [];
  for (const platform of platforms) {
    await seed(system, project, crowdOfEach, { platform, topics: ["everyone"], capabilities });
    const alone = await seed(system, project, directOfEach, { platform, capabilities });
    direct.push(...alone.map(({ id }) => `device:${id}`));
  }
  return direct;
};

const validButton = ({ opened }: Reported): string | undefined => buttons.find(({ id }) => id === opened)?.id;

/** The differences between what devices reported, and counts and deliveries of their notifications. */
const compareReports = async (project: Project, { reported }: ReportLoad): Promise<string[]> => {
  const problems: string[] = [];
  for (const [id, reports] of Map.groupBy(reported.values(), ({ notificationId }) => notificationId)) {
    const { counts } = await project.notification(id);
    const count = (of: (one: Reported) => boolean) => reports.filter(of).length;
    const expected: Record<string, number> = {
      receipts_asked: count(({ asked }) => asked),
      received: count(({ asked }) => asked),
      dismissed: count(({ dismissed }) => dismissed),
      opened: count(({ opened }) => opened !== undefined),
    };
    for (const [name, number] of Object.entries(expected))
      if (counts[name as "opened"] !== number)
        problems.push(`${id}: ${number} ${name} were reported, ${counts[name as "opened"]} counted`);
    for (const { id: button } of buttons) {
      const [were, are] = [count((one) => validButton(one) === button), counts.buttons?.[button] ?? 0];
      if (were !== are) problems.push(`${id}: ${button} was pressed ${were} times, and is counted ${are} times`);
    }
    for (const row of await project.deliveries(id)) {
      const one = reported.get(deliveryKey(id, row.device_id));
      const shown = [row.receipt_asked, row.received_at, row.dismissed_at, row.opened_at].map(Boolean).join();
      const was = [one?.asked, one?.asked, one?.dismissed, one?.opened !== undefined].map(Boolean).join();
      if (shown !== was || row.button !== (one && validButton(one)))
        problems.push(`${id} ${row.device_id}: reported ${was}, listed ${shown} ${row.button}`);
    }
  }
  return problems;
};

/** The differences between what devices reported and the events: each is in one. */
const compareReportEvents = async (system: System, project: Project, { reported }: ReportLoad): Promise<string[]> => {
  const receipts = async (contract: typeof NotificationReceivedV1 | typeof NotificationDismissedV1) =>
    (await eventsOf<DataOf<typeof contract>>(system, project, contract)).flatMap(({ notification_id, devices }) =>
      devices.map((device) => deliveryKey(notification_id, device)),
    );
  const opens = (await eventsOf(system, project, NotificationOpenedV1)).map(
    ({ notification_id, device_id, button }) => `${deliveryKey(notification_id, device_id)} ${button}`,
  );
  const compare = (
    name: string,
    published: readonly string[],
    of: (one: Reported) => boolean,
    more = (_: Reported) => "",
  ) => {
    const expected = [...reported].filter(([, one]) => of(one)).map(([key, one]) => key + more(one));
    return published.toSorted().join() === expected.toSorted().join()
      ? []
      : [
          `${expected.length} ${name} were reported, ${published.length} published (${new Set(published).size} different)`,
        ];
  };
  return [
    ...compare("received", await receipts(NotificationReceivedV1), ({ asked }) => asked),
    ...compare("dismissed", await receipts(NotificationDismissedV1), ({ dismissed }) => dismissed),
    ...compare(
      "opened",
      opens,
      ({ opened }) => opened !== undefined,
      (one) => ` ${validButton(one)}`,
    ),
  ];
};

export const reports: Row = {
  name: "reports",
  fault:
    "kill -9 of one of two replicas of each service, and of NATS, while receipts, dismissals, presses and opens arrive twice (short: once each)",
  pass: "each accepted report is counted, listed and published once; a repeat asks the same devices",
  fixture: replicated,
  run: async ({ long, use }) => {
    const { system, second } = await use(replicated);
    const trial = await startTrial(system, { each: 20, script: [] });
    const project = await system.project("Reports", providers);
    const direct = await seedCrowd(system, project);
    const load = startReports(system, project, [system.gateway, second]);
    let pushes = 0;
    for (const victim of Array(long ? 4 : 1)
      .fill([...serviceNames, "nats"])
      .flat()) {
      await sendSurely(project, { title: "To everyone", targets: ["everyone"], ...content });
      await sendSurely(project, { title: "To some", targets: direct, ...content });
      pushes += platforms.length * (crowdOfEach + directOfEach);
      await randomMoment(1_500);
      if (victim === "nats") {
        await system.broker.kill();
        await system.broker.restart();
      } else await system.services[victim as "gateway"].kill();
      await Promise.all([trial.recovered(), system.ready()]);
    }
    await load.finished(pushes);
    const findings = await trial.finish({ timeoutMs: 120_000 });
    for (const problem of load.problems) trial.problem(problem);
    let differences: string[] = [];
    await eventually(
      async () => {
        differences = [...(await compareReports(project, load)), ...(await compareReportEvents(system, project, load))];
        if (differences.length > 0) throw new Error("not everything is counted yet");
      },
      { timeoutMs: countedWithinMs },
    ).catch((error: Error) => trial.problem(error.message));
    for (const problem of [...differences.slice(0, 20), ...(await compareStatistics(project))]) trial.problem(problem);
    const asked = [...load.reported.values()].filter((one) => one.asked).length;
    trial.note(`${pushes} deliveries, ${asked} asked for a receipt`);
    return findings;
  },
};
