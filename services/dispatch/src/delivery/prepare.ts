import { type Bus, createUnanswered, sendGroupedRequest, sendRequest } from "@herald/bus";
import {
  type AskedRules,
  audienceOfContent,
  audienceRequests,
  type DeviceId,
  maxGroupSize,
  type ProjectId,
  type Recipient,
  type SendV1,
  type Served,
  targetOfRecipient,
  targetsOfSend,
} from "@herald/contracts";
import { createGroupCommit, type GroupCommit, isUnavailable } from "@herald/kit";
import { maxSmallAudience } from "@herald/rules";
import { noneSkipped, type Sendable, type Skips } from "../domain/settle-row.ts";
import type { Rules } from "../project-rules.ts";
import type { Expanded } from "../stores/notification-document.ts";
import { keyOfRecipient } from "./recipient-values.ts";
import type { RuleEvaluator } from "./rule-evaluator.ts";

/** The audience of a send: a batch for each platform and provider, with devices sorted by id, and the targets without active device. */
export type SendAudience = {
  readonly batches: readonly (Served & { readonly devices: Recipient[] })[];
  readonly unmatched: readonly string[];
  /** What is stored of the list of recipients that it has instead of targets. */
  readonly list?: Expanded["list"];
};

/** What registry found for a send, where each device of a recipient has the recipient's values. */
const audienceOf = ({ content, recipients }: SendV1, found: SendAudience): SendAudience => {
  if (content.recipients === undefined || recipients === undefined) return found;
  const { kind } = content.recipients;
  const lines = recipients.flat();
  const byKey = new Map(lines.map((line) => [line.key, line.values]));
  const withoutDevice = new Set(found.unmatched);
  return {
    batches: found.batches.map((batch) => ({
      ...batch,
      devices: batch.devices.map((device) => ({ ...device, values: byKey.get(device[keyOfRecipient[kind]] ?? "") })),
    })),
    unmatched: [],
    list: {
      lastLine: lines.at(-1)?.n ?? 0,
      lines: lines.length,
      unmatched: lines.filter((line) => withoutDevice.has(targetOfRecipient(kind, line))).map(({ n }) => n),
    },
  };
};

/** Small sends must be fast, also when several arrive within the usual interval. */
const requestIntervalMs = 4;

/** Whom a send reaches; null: more devices than a small send may have, or targets that no index serves. */
type Answer = SendAudience | null;

/** Why registry was not asked for a send, or did not say: it may have died over the send, or it refused a request for several. */
export type Unresolved = "suspect" | "refused";

/** Finds whom sends of a project reach. */
export const createResolveSends = (bus: Bus, rules: Rules, evaluator: Pick<RuleEvaluator, "askedOf">) => {
  const ask = sendGroupedRequest(() => bus, audienceRequests.resolve, { intervalMs: requestIntervalMs });
  const unanswered = createUnanswered();
  /** Of projects with sends that are being resolved. */
  const projects = new Map<ProjectId, { readonly commit: GroupCommit<SendV1, Answer | Unresolved>; sends: number }>();

  const requestOf = (projectId: ProjectId, sends: readonly SendV1[]) => ({
    projectId,
    sends: sends.map((send) => ({
      ...audienceOfContent({ ...send.content, targets: targetsOfSend(send) }),
      ...(rules.byProject.has(projectId) && evaluator.askedOf(projectId, send.content)),
    })),
    limit: maxSmallAudience,
  });

  const open = (projectId: ProjectId) => {
    const write = async (sends: readonly SendV1[]): Promise<readonly (Answer | Unresolved)[]> => {
      try {
        return (await ask(requestOf(projectId, sends))).sends;
      } catch (error) {
        if (sends.length === 1 || isUnavailable(error)) throw error;
        return sends.map(() => "refused");
      }
    };
    return {
      commit: createGroupCommit<SendV1, Answer | Unresolved>(write, { max: maxGroupSize, concurrent: 1 }),
      sends: 0,
    };
  };

  /** Asks registry for a project's concurrent sends in one request, and for all projects in one message. */
  const joined = async (projectId: ProjectId, sends: readonly SendV1[]) => {
    const project = projects.get(projectId) ?? open(projectId);
    projects.set(projectId, project);
    project.sends += sends.length;
    try {
      return await project.commit.all(sends);
    } finally {
      project.sends -= sends.length;
      if (project.sends === 0) projects.delete(projectId);
    }
  };

  return {
    /**
     * Resolves sends of one project together; a slow answer delays only its project. What is unresolved must be resolved alone. Errors:
     * `service-unavailable`, `bus-unavailable`.
     */
    each: async (
      projectId: ProjectId,
      sends: readonly SendV1[],
    ): Promise<PromiseSettledResult<Answer | Unresolved>[]> => {
      const asked =
        unanswered.counts.size === 0
          ? sends
          : sends.filter(({ notificationId }) => !unanswered.isSuspect(notificationId));
      const answers = await joined(projectId, asked);
      let next = 0;
      return sends.map((send) => {
        if (send !== asked[next]) return { status: "fulfilled", value: "suspect" };
        const answer = answers[next++] as PromiseSettledResult<Answer | Unresolved>;
        if (answer.status === "rejected") unanswered.count(send.notificationId, answer.reason);
        else if (answer.value !== null && typeof answer.value === "object")
          return { status: "fulfilled", value: audienceOf(send, answer.value) };
        return answer;
      });
    },

    /** Resolves one send alone. Also throws `process-crashed` when registry died over it. */
    alone: async (send: SendV1): Promise<Answer> => {
      const { projectId, notificationId: suspect } = send;
      try {
        const { sends } = await sendRequest(bus, audienceRequests.resolve, requestOf(projectId, [send]), { suspect });
        return sends[0] ? audienceOf(send, sends[0]) : null;
      } catch (error) {
        unanswered.count(suspect, error);
        throw error;
      }
    },
  };
};

export type ResolveSmallSends = ReturnType<typeof createResolveSends>;

/** Devices that registry checks per request. */
const maxChecked = 1_000;

/** Devices of one project that are checked in one request, each for one user, and all for one kind if they may not want it. */
type Check = {
  readonly projectId: ProjectId;
  readonly devices: Map<DeviceId, string | undefined>;
  readonly kind?: AskedRules["kind"];
};

/**
 * Finds the devices that waited and must not get the push any more: they were deleted, are inactive, or belong to another user than
 * when the audience was read. Asks registry for the devices of concurrent calls in one request per project. Throws `service-unavailable`
 * while registry is unavailable.
 */
export const createCheckWaiting = (bus: Bus) => {
  const fits = (request: Check, { projectId, devices, kind }: Check): boolean =>
    request.projectId === projectId &&
    request.kind?.name === kind?.name &&
    request.kind?.on === kind?.on &&
    request.devices.size + devices.size <= maxChecked &&
    // The response names only devices, so a request can check each device for one user only.
    [...devices].every(([id, userId]) => !request.devices.has(id) || request.devices.get(id) === userId);

  const send = async ({ projectId, devices, kind }: Check): Promise<Skips> => {
    const asked = [...devices].map(([id, userId]) => ({ id, ...(userId !== undefined && { userId }) }));
    const { moved, muted = [] } = await sendRequest(bus, audienceRequests.check, { projectId, devices: asked, kind });
    if (moved.length + muted.length === 0) return noneSkipped;
    return new Map([...muted.map((id) => [id, "muted"] as const), ...moved.map((id) => [id, "moved"] as const)]);
  };

  const commit = createGroupCommit<Check, PromiseSettledResult<Skips>>(
    async (checks) => {
      const requests: Check[] = [];
      const places = checks.map((check) => {
        let place = requests.findIndex((request) => fits(request, check));
        if (place < 0) place = requests.push({ ...check, devices: new Map() }) - 1;
        for (const [id, userId] of check.devices) requests[place]?.devices.set(id, userId);
        return place;
      });
      const answers = await Promise.allSettled(requests.map(send));
      return places.map((place) => answers[place] as PromiseSettledResult<Skips>);
    },
    { max: maxGroupSize, concurrent: 1, keyOf: ({ projectId }) => projectId },
  );

  /**
   * `personal`: the push may be for a single user. Then it must not reach the device's next user. A push for all may. `kind`: also finds
   * those that do not want the kind.
   */
  return async (
    projectId: ProjectId,
    devices: readonly Pick<Sendable, "id" | "userId">[],
    personal: boolean,
    kind?: AskedRules["kind"],
  ): Promise<Skips> => {
    if (devices.length === 0) return noneSkipped;
    const asked = new Map(devices.map(({ id, userId }) => [id, personal ? userId : undefined]));
    const result = await commit({ projectId, devices: asked, ...(kind && { kind }) });
    if (result.status === "rejected") throw result.reason;
    return result.value;
  };
};

export type CheckWaiting = ReturnType<typeof createCheckWaiting>;
