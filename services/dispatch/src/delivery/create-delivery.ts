import type { FairGate } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { createActivityChannels } from "./activity-channels.ts";
import { createActivitySends } from "./activity-sends.ts";
import { createBacklog } from "./backlog.ts";
import { createBegunSends, createSendAsLarge } from "./begun-sends.ts";
import { createDeliverGroup } from "./deliver-group.ts";
import { createDeliverSends, createDeliverWithPlaces } from "./deliver-sends.ts";
import { createExpand, createExpandQueued } from "./expand.ts";
import { createExpansions } from "./expansions.ts";
import { createDueMessages, createFinisher } from "./follow-up.ts";
import { createNotificationCache } from "./notification-cache.ts";
import { createPipeline, type PipelineDeps } from "./pipeline.ts";
import { createCheckWaiting, createResolveSends } from "./prepare.ts";
import { createProposals } from "./proposals.ts";
import { createRecipientValues } from "./recipient-values.ts";
import { createRecoverLostWork } from "./recover-lost-work.ts";
import { createResumeSends } from "./resume-sends.ts";
import { createRuleEvaluator } from "./rule-evaluator.ts";
import { createTendActivity } from "./tend-activity.ts";

/** Holds 10,000 notification contents of usual size, or more of the largest ones than are sent at a time. */
const cachedBytes = 32 * 1_048_576;

/** Composes the steps in this folder that take a notification from its send to its end. */
export const createDelivery = (
  deps: Deps & Pick<PipelineDeps, "sweepDue"> & { readonly gate: FairGate; readonly places: number },
) => {
  const { bus, notifications, now } = deps;
  const cache = createNotificationCache(notifications, { maxBytes: cachedBytes, now });
  const finisher = createFinisher(deps);
  const dueMessages = createDueMessages(bus);
  const activities = createActivitySends(deps);
  const channels = createActivityChannels({ ...deps, dueMessages });
  const evaluator = createRuleEvaluator(deps);
  const expand = createExpand(bus, evaluator, activities);
  const expandQueued = createExpandQueued({ ...deps, expand });
  const expansionSteps = createExpansions({ ...deps, finisher, dueMessages });
  const proposals = createProposals({ ...deps, dueMessages, expandQueued, expansionSteps });
  const checkWaiting = createCheckWaiting(bus);
  const resolve = createResolveSends(bus, deps.rules, evaluator);
  const sendAsLarge = createSendAsLarge(bus);
  const recipientValues = createRecipientValues(deps.recipients);
  const pipeline = createPipeline({ ...deps, activities, channels, cache, finisher, dueMessages, recipientValues });
  const tendActivity = createTendActivity({ ...deps, activities, cache, channels, dueMessages, pipeline });
  const { recover, release } = createRecoverLostWork({ ...deps, pipeline, expansionSteps, expandQueued, dueMessages });
  const begun = createBegunSends({ ...deps, finisher, pipeline, checkWaiting, release, sendAsLarge });
  const deliverGroup = createDeliverGroup({ ...deps, begun, cache, evaluator, pipeline, resolve, sendAsLarge });
  const deliverWithPlaces = createDeliverWithPlaces(deps.gate, deliverGroup);
  const backlog = createBacklog({ ...deps, begun, deliverWithPlaces });
  const deliverSends = createDeliverSends({ ...deps, begun, deliverWithPlaces, backlog });
  const resumeSends = createResumeSends({ ...deps, backlog, dueMessages, expandQueued });
  return {
    ...{ activities, cache, finisher, dueMessages, expandQueued, checkWaiting, evaluator, pipeline },
    ...{ channels, tendActivity },
    ...{ begun, recover, backlog, deliverSends, expansionSteps, proposals, resumeSends },
  };
};

/** Dependencies of handlers and requests. */
export type DeliveryDeps = Deps & ReturnType<typeof createDelivery>;
