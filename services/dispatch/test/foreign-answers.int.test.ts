import { sendRequest } from "@herald/bus";
import { deliveryRequests, providerRequests } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const page = "<!DOCTYPE html><title>Sign in to the network</title>";

test.each([200, 403, 410])(
  "a page with %i in the provider's place delays pushes, and the provider shows why",
  async (status) => {
    const { project, send, partition, simulators, bus } = dispatch;
    simulators.script([{ provider: "apns", status, body: page }]);
    const projectId = await project();
    const id = await send(projectId);
    const batch = devices(200);
    await partition(projectId, id, [batch]);
    const view = () => sendRequest(bus, providerRequests.get, { projectId, provider: "apns" });
    const { host } = new URL(simulators.apns.url);
    await eventually(async () =>
      expect(await view()).toMatchObject({
        status: "active",
        problems: [
          {
            reason: "not-the-provider",
            host,
            detail: expect.stringContaining("Something answers in the provider's place"),
          },
        ],
      }),
    );
    const deviceId = batch[0]?.id ?? ("" as never);
    await eventually(async () => {
      const { attempts, nextAttemptAt } = await sendRequest(bus, deliveryRequests.trace, {
        ...{ projectId, notificationId: id, deviceId },
      });
      expect(attempts.at(-1)?.provider_reason).toContain(`HTTP ${status} with a web page is no answer of ${host}`);
      expect(nextAttemptAt).toBeDefined();
    });
    expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { pending: 200, accepted: 0, failed: 0 } });
    // Like a server that cannot be reached, it pauses: those of the first chunk go there, then few probes.
    expect(simulators.stats().apns?.total).toBeLessThanOrEqual(100);

    simulators.script([]);
    await eventually(
      async () => {
        dispatch.pass(5_000);
        expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: 200 } });
      },
      { timeoutMs: 20_000 },
    );
    await eventually(async () => expect(await view()).not.toHaveProperty("problems"));
  },
);
