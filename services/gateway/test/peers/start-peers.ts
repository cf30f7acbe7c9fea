import { type Bus, handleRequest, openBucket, type RequestListener } from "@herald/bus";
import { ProvidersRecord, type SendV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { acceptedView } from "../../src/sending/accept-notification.ts";
import { type Opens, serveAnalytics } from "./analytics.ts";
import { serveWebhooks } from "./analytics-webhooks.ts";
import { type Notifications, serveDispatch } from "./dispatch.ts";
import { serveAudit } from "./registry-audit.ts";
import { type Devices, serveDevices } from "./registry-devices.ts";
import { serveImports } from "./registry-imports.ts";
import { serveOperators } from "./registry-operators.ts";
import { serveProjects } from "./registry-projects.ts";
import { serveTemplates } from "./registry-templates.ts";
import { serveTopics } from "./registry-topics.ts";
import type { Serve } from "./rows.ts";

/**
 * The peers of the gateway on the bus. They answer its requests under the real contracts, with as little logic as its tests need. The
 * services' own tests cover their behaviour.
 */
export const startPeers = (bus: Bus) => {
  const asked: { question: string; data: unknown }[] = [];
  /** By request: the error to throw instead of the answer. */
  const failures = new Map<string, HeraldError>();
  /** Requests that are performed once, but whose answer is lost. */
  const late = new Set<string>();
  let missing: string | undefined;

  const answering: RequestListener[] = [];
  const serve: Serve = (question, handle) => {
    answering.push(
      handleRequest(bus, question, async (data) => {
        asked.push({ question: question.name, data });
        if (question.service === missing) throw new HeraldError("service-unavailable", `${missing} does not answer`);
        const failure = failures.get(question.name);
        if (failure !== undefined) throw failure;
        const result = await handle(data);
        if (late.delete(question.name)) throw new HeraldError("service-unavailable", "the answer is lost");
        return result;
      }),
    );
  };

  const devices: Devices = new Map();
  const notifications: Notifications = new Map();
  const opens: Opens = new Map();
  const { tokenBucket, projectBucket } = serveProjects(serve, bus);
  serveOperators(serve, bus);
  serveAudit(serve);
  serveDevices(serve, devices);
  serveImports(serve);
  serveTopics(serve, devices);
  serveTemplates(serve, bus);
  const settled = new Map<string, string>();
  const providerBucket = openBucket(bus, "push_providers", ProvidersRecord);
  serveDispatch(serve, { notifications, devices, providerBucket, settled });
  serveAnalytics(serve, opens);
  serveWebhooks(serve);

  return {
    asked,
    failures,
    late,
    /** Makes a service unavailable: it answers nothing, as if it had no subscription. */
    away: (service: "registry" | "dispatch" | "analytics") => {
      missing = service;
    },
    back: () => {
      missing = undefined;
    },
    devices,
    notifications,
    /** Stores a send that the gateway published, so that dispatch finds it. */
    store: (send: SendV1) =>
      void notifications.set(send.notificationId, { projectId: send.projectId, value: acceptedView(send) }),
    settled,
    opens,
    tokenBucket,
    projectBucket,
    stop: async () => {
      await Promise.all(answering.map((one) => one.stop()));
    },
  };
};

export type Peers = ReturnType<typeof startPeers>;
