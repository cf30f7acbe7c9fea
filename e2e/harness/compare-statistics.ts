import { eventually, expectStatus } from "@herald/testing";
import type { Project } from "./project.ts";

/** The differences between the statistics of a project and the counts of its notifications, after both have settled. */
export async function compareStatistics(project: Project, timeoutMs = 30_000): Promise<string[]> {
  let problems: string[] = [];
  await eventually(
    async () => {
      const expected = { sent: 0, failed: 0, opened: 0, receipts_asked: 0, received: 0, dismissed: 0 };
      for (const { counts } of await project.notifications()) {
        expected.sent += counts.accepted;
        expected.failed += counts.failed;
        for (const name of ["opened", "receipts_asked", "received", "dismissed"] as const)
          expected[name] += counts[name];
      }
      const { totals } = expectStatus(await project.call("GET /stats"), 200).body.data;
      problems = Object.entries(expected).flatMap(([name, count]) =>
        totals[name] === count ? [] : [`the statistics count ${totals[name]} ${name}, the notifications ${count}`],
      );
      if (problems.length > 0) throw new Error("the statistics do not agree yet");
    },
    { timeoutMs },
  ).catch((error: Error) => {
    if (problems.length === 0) problems = [error.message];
  });
  return problems;
}
