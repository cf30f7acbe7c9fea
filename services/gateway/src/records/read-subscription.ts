import { type Platform, type ProjectId, type SubscriptionKeys, vapidKeyId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ProjectDirectory } from "./project-directory.ts";

type Subscription = {
  readonly keys?: Omit<SubscriptionKeys, "vapid_key">;
  /** The key that the app says it subscribed with. */
  readonly vapidKeyId?: string;
  /** What registry takes for a subscription that is new and says nothing. */
  readonly currentVapidKeyId?: string;
};

/**
 * What a registration says of a Web Push subscription, as registry wants to know it. `platform` is undefined where only registry
 * knows it. A key that the project does not have is refused, so that nobody waits for pushes that would never be let through;
 * while the project has no Web Push at all, none can be told from another.
 * @throws HeraldError `validation-failed`, with `field` as what `keys` are called in the body.
 */
export const readSubscription = async (
  projects: Pick<ProjectDirectory, "vapidKeys">,
  projectId: ProjectId,
  platform: Platform | undefined,
  given: SubscriptionKeys | undefined,
  field: string,
): Promise<Subscription> => {
  if (platform !== undefined && platform !== "web") return {};
  const { vapid_key: publicKey, ...keys } = given ?? {};
  const known = await projects.vapidKeys(projectId);
  const current = known?.find(({ status }) => status === "current");
  const id = publicKey === undefined ? undefined : vapidKeyId(publicKey);
  if (id !== undefined && known !== undefined && !known.some((key) => key.id === id)) {
    // One that was staged a moment ago may not have come here yet.
    const now = await projects.vapidKeys(projectId, true);
    if (now !== undefined && !now.some((key) => key.id === id))
      throw new HeraldError(
        "validation-failed",
        `${field}.vapid_key: is no key of this project; subscribe with the one that GET /api/v1/webpush-key answers`,
      );
  }
  return {
    ...("p256dh" in keys ? { keys: keys as NonNullable<Subscription["keys"]> } : {}),
    ...(id === undefined ? {} : { vapidKeyId: id }),
    ...(current === undefined ? {} : { currentVapidKeyId: current.id }),
  };
};
