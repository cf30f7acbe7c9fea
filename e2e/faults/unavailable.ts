import { eventually, type HttpAnswer, request } from "@herald/testing";
import { apnsToken } from "../harness/project.ts";
import type { ServiceName, System } from "../harness/system.ts";
import type { Trial } from "./trial.ts";

/** Seconds. Clients that wait longer than the outage lasts make it longer. */
const maxRetryAfter = 10;

/** The problem of a refusal, which must have a Retry-After and a reason. */
const problemOf = ({ status, headers, body, text }: HttpAnswer): string | undefined =>
  status === 503 &&
  Number(headers.get("retry-after")) > 0 &&
  Number(headers.get("retry-after")) <= maxRetryAfter &&
  headers.get("content-type")?.includes("application/problem+json") &&
  body.errors.length === 1
    ? undefined
    : `answered ${status} with Retry-After ${headers.get("retry-after")}: ${text.slice(0, 200)}`;

export const expectUnavailable = (trial: Trial, route: string, answer: HttpAnswer): void => {
  const problem = problemOf(answer);
  if (problem !== undefined) trial.problem(`${route} was ${problem} while what it needs was unavailable`);
};

/** Reports routes without a correct refusal while their dependency is unavailable. */
export async function expectUnavailableRoutes(trial: Trial, routes: readonly string[]): Promise<void> {
  for (const route of routes) expectUnavailable(trial, route, await trial.project.call(route));
}

const statusOf = async ({ services }: System, name: ServiceName, probe: string) =>
  (await request(services[name].url, `GET ${probe}`)).status;

/** Services with a database are alive and not ready; the gateway, which has none, is ready. */
export async function expectDatabaseUnavailable(system: System, trial: Trial, broadcast: string): Promise<void> {
  for (const name of ["registry", "dispatch", "analytics"] as const)
    await eventually(async () => {
      const status = await statusOf(system, name, "/readyz");
      if (status !== 503) throw new Error(`${name} is said to be ready (${status}) while the database is unavailable`);
    }).catch((error: Error) => trial.problem(error.message));
  for (const [name, probe] of [
    ["gateway", "/livez"],
    ["registry", "/livez"],
    ["dispatch", "/livez"],
    ["analytics", "/livez"],
    ["gateway", "/readyz"],
  ] as const) {
    const status = await statusOf(system, name, probe);
    if (status !== 200) trial.problem(`${name} answers ${status} to ${probe} while the database is unavailable`);
  }
  const routes = ["GET /devices", "GET /topics", `GET /notifications/${broadcast}/deliveries`];
  await expectUnavailableRoutes(trial, routes);
  const body = { device: { token: apnsToken(), platform: "ios" } };
  expectUnavailable(trial, "POST /devices", await trial.project.call("POST /devices", { body }));
}
