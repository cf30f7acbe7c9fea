import { handleRequest, type RequestListener } from "@herald/bus";
import { kindLimits, kindRequests } from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";

const kindNotFound = () => notFound("kind-not-found", "kind");

type KindRequestDeps = Pick<Deps, "bus" | "kinds" | "replication">;

/** Changes are replicated before the reply. */
export const handleKindRequests = ({ bus, kinds, replication }: KindRequestDeps): RequestListener[] => [
  handleRequest(bus, kindRequests.put, async ({ projectId, kind }) => {
    // Another declaration of the same kind may come between the two updates of a put.
    let put = await kinds.put(projectId, kind);
    if (put === "none") {
      await kinds.list(projectId);
      put = await kinds.put(projectId, kind);
    }
    if (put === "none")
      throw new HeraldError("kind-limit", `kind: the project has ${kindLimits.perProject} kinds, the maximum`);
    await replication.replicateRules(projectId);
    return { created: put === "created" };
  }),

  handleRequest(bus, kindRequests.get, async ({ projectId, kind }) => {
    const declared = await kinds.list(projectId);
    return existing(
      declared.find((one) => one.kind === kind),
      kindNotFound,
    );
  }),

  handleRequest(bus, kindRequests.list, async ({ projectId, page }) =>
    pageOfRows([...(await kinds.list(projectId))], { request: page, key: ({ kind }) => kind }),
  ),

  handleRequest(bus, kindRequests.delete, async ({ projectId, kind }) => {
    const removed = await kinds.remove(projectId, kind);
    // Also for a repeat, because an earlier attempt may have ended before this.
    await replication.replicateRules(projectId);
    if (!removed) {
      await kinds.list(projectId);
      throw kindNotFound();
    }
    return {};
  }),
];
