import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin } from "./api/clients.ts";
import { orNull } from "./api/problems.ts";
import { browserStorage, lastProjectKey } from "./browser-storage.ts";
import { Missing } from "./missing.tsx";

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  loader: async () => {
    const last = browserStorage.get(lastProjectKey);
    const project =
      (last && (await orNull(admin.projects.get(last)))) || (await admin.projects.list({ perPage: 1 }).page()).data[0];
    if (project) throw redirect({ to: "/p/$project", params: { project: project.id } });
  },
  component: lazyRouteComponent(() => import("./first-project.tsx"), "FirstProject"),
});

const signInCode = createRoute({
  getParentRoute: () => root,
  path: "/sign-in-code",
  component: lazyRouteComponent(() => import("./sign-in-code.tsx"), "SignInCodePage"),
});

const shell = createRoute({
  getParentRoute: () => root,
  path: "/p/$project",
  component: lazyRouteComponent(() => import("./shell.tsx"), "Shell"),
});

/** Loads the code of a page when the page is opened. */
type Load = () => Promise<{ readonly default: () => ReactNode }>;

const page = (path: string, load: Load) =>
  createRoute({ getParentRoute: () => shell, path, component: lazyRouteComponent(load) });

const settings = page("/settings", () => import("./pages/settings.tsx"));
const operations = page("/operations", () => import("./pages/operations.tsx"));

const tab = (parent: typeof settings, path: string, load: Load) =>
  createRoute({ getParentRoute: () => parent, path, component: lazyRouteComponent(load) });

const tree = root.addChildren([
  home,
  signInCode,
  shell.addChildren([
    page("/", () => import("./pages/overview.tsx")),
    page("/compose", () => import("./pages/compose.tsx")),
    page("/notifications", () => import("./pages/notifications.tsx")),
    page("/notifications/$notification", () => import("./pages/notification.tsx")),
    page("/notifications/$notification/devices/$device", () => import("./pages/delivery-trace.tsx")),
    page("/trace", () => import("./pages/trace.tsx")),
    page("/devices", () => import("./pages/devices.tsx")),
    page("/devices/$device", () => import("./pages/device.tsx")),
    page("/templates", () => import("./pages/templates.tsx")),
    page("/templates/$template", () => import("./pages/template.tsx")),
    page("/topics", () => import("./pages/topics.tsx")),
    page("/users", () => import("./pages/users.tsx")),
    page("/users/$user", () => import("./pages/user.tsx")),
    operations.addChildren([
      tab(operations, "/", () => import("./pages/operations/status.tsx")),
      tab(operations, "/letters", () => import("./pages/operations/dead-letters.tsx")),
      tab(operations, "/operators", () => import("./pages/operations/operators.tsx")),
      tab(operations, "/audit", () => import("./pages/operations/audit.tsx")),
    ]),
    settings.addChildren([
      tab(settings, "/", () => import("./pages/settings/general.tsx")),
      tab(settings, "/providers", () => import("./pages/settings/providers.tsx")),
      tab(settings, "/kinds", () => import("./pages/settings/kinds.tsx")),
      tab(settings, "/tokens", () => import("./pages/settings/tokens.tsx")),
      tab(settings, "/webhooks", () => import("./pages/settings/webhooks.tsx")),
      tab(settings, "/webhooks/$webhook", () => import("./pages/settings/webhook.tsx")),
      tab(settings, "/identity", () => import("./pages/settings/identity.tsx")),
      tab(settings, "/limits", () => import("./pages/settings/limits.tsx")),
    ]),
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  basepath: "/console",
  defaultPreload: "intent",
  defaultNotFoundComponent: Missing,
  scrollRestoration: true,
});
