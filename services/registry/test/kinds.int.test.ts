import {
  type DeclaredKind,
  kindLimits,
  kindRequests,
  newProjectId,
  projectRequests,
  projectRulesKey,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { failure, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry({ overrides: { reconcileEveryMs: 300 } });

const offers: DeclaredKind = {
  kind: "offers",
  title: "Offers",
  on_by_default: true,
  critical: false,
  quiet_hours: null,
  frequency_cap: { count: 2, per: "day" },
};
const page = { by: "page" as const, page: 1, perPage: 100 };
const rulesOf = async (projectId: Parameters<typeof projectRulesKey>[0]) =>
  (await registry.rules.get(projectRulesKey(projectId)))?.value;

test("a kind is declared, replaced and deleted, and replicated before each reply", async () => {
  const projectId = await registry.project();
  expect(await rulesOf(projectId)).toBeUndefined();
  expect(await registry.ask(kindRequests.put, { projectId, kind: offers })).toEqual({ created: true });
  expect(await rulesOf(projectId)).toEqual({ projectId, kinds: [offers] });
  const other = { ...offers, title: "Deals", frequency_cap: undefined, quiet_hours: undefined };
  expect(await registry.ask(kindRequests.put, { projectId, kind: other })).toEqual({ created: false });
  expect(await registry.ask(kindRequests.get, { projectId, kind: "offers" })).toEqual(other);
  await registry.ask(kindRequests.put, { projectId, kind: { ...offers, kind: "constructor" } });
  const { data } = await registry.ask(kindRequests.list, { projectId, page });
  expect(data.map(({ kind }) => kind)).toEqual(["constructor", "offers"]);
  await registry.ask(kindRequests.delete, { projectId, kind: "constructor" });
  await registry.ask(kindRequests.delete, { projectId, kind: "offers" });
  expect(await rulesOf(projectId)).toBeUndefined();
  for (const request of [kindRequests.get, kindRequests.delete])
    expect(await failure(registry.ask(request, { projectId, kind: "offers" }))).toMatchObject({
      code: "kind-not-found",
    });
});

test("a project has at most a hundred kinds, also if they are declared at the same moment", async () => {
  const projectId = await registry.project();
  const put = (at: number) => registry.ask(kindRequests.put, { projectId, kind: { ...offers, kind: `kind-${at}` } });
  const results = await Promise.allSettled(Array.from({ length: kindLimits.perProject + 9 }, (_, at) => put(at)));
  const refused = results.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(9);
  for (const one of refused) expect(one).toMatchObject({ reason: { code: "kind-limit" } });
  expect((await rulesOf(projectId))?.kinds).toHaveLength(kindLimits.perProject);
  const [some] = (await registry.ask(kindRequests.list, { projectId, page })).data;
  if (some) expect(await registry.ask(kindRequests.put, { projectId, kind: some })).toEqual({ created: false });
});

test("one kind that is declared at the same moment is declared once", async () => {
  const projectId = await registry.project();
  const put = () => registry.ask(kindRequests.put, { projectId, kind: offers });
  const results = await Promise.all([put(), put(), put(), put()]);
  expect(results.filter(({ created }) => created)).toHaveLength(1);
  expect((await registry.ask(kindRequests.list, { projectId, page })).data).toEqual([offers]);
});

test("the project's quiet hours are a rule, too; a lost record is restored, and that of a deleted project removed", async () => {
  const projectId = await registry.project();
  const quietHours = { from: "22:00", to: "07:00", mode: "delay" as const };
  const project = await registry.ask(projectRequests.change, { projectId, quietHours });
  expect(project.quiet_hours).toEqual(quietHours);
  expect(await rulesOf(projectId)).toEqual({ projectId, kinds: [], quietHours });
  await registry.rules.delete(projectRulesKey(projectId));
  await eventually(async () => expect(await rulesOf(projectId)).toEqual({ projectId, kinds: [], quietHours }));
  expect((await registry.ask(projectRequests.change, { projectId, quietHours: null })).quiet_hours).toBeUndefined();
  expect(await rulesOf(projectId)).toBeUndefined();
  await registry.ask(kindRequests.put, { projectId, kind: offers });
  await registry.ask(projectRequests.delete, { projectId });
  expect(await rulesOf(projectId)).toBeUndefined();
});

test("a project that does not exist has no kinds", async () => {
  const projectId = newProjectId(new Date());
  const asked = [
    registry.ask(kindRequests.put, { projectId, kind: offers }),
    registry.ask(kindRequests.list, { projectId, page }),
    registry.ask(kindRequests.get, { projectId, kind: "offers" }),
    registry.ask(kindRequests.delete, { projectId, kind: "offers" }),
  ];
  for (const failed of await Promise.all(asked.map(failure)))
    expect(failed).toMatchObject({ code: "project-not-found" });
});
