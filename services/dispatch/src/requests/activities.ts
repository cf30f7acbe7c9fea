import { handleRequest, type RequestListener } from "@herald/bus";
import { activityRequests } from "@herald/contracts";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";

/** Gives an app the channel with which it starts an activity itself. */
export const handleActivityRequests = ({ bus, channels }: Pick<DeliveryDeps, "bus" | "channels">): RequestListener =>
  handleRequest(bus, activityRequests.channel, async ({ projectId, activityId, ...device }) => {
    const [id] = (await channels.of({ projectId, id: activityId }, [device])).values();
    return id === undefined ? {} : { id };
  });
