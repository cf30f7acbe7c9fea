import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { admin } from "./api/clients.ts";
import { FirstProject } from "./first-project.tsx";
import { lastProject } from "./last-project.ts";
import { Missing } from "./missing.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  loader: async () => {
    const { data } = await admin.projects.list({ perPage: 100 }).page();
    const project = data.find(({ id }) => id === lastProject.get()) ?? data[0];
    if (project) throw redirect({ to: "/p/$project", params: { project: project.id } });
  },
  component: FirstProject,
});

const shell = createRoute({ getParentRoute: () => root, path: "/p/$project", component: Shell });

const page = <const Path extends string>(
  path: Path,
  load: () => Promise<{ readonly default: () => React.ReactNode }>,
) => createRoute({ getParentRoute: () => shell, path, component: lazyRouteComponent(load) });

const tree = root.addChildren([home, shell.addChildren([page("/", () => import("./pages/overview.tsx"))])]);

export const router = createRouter({
  routeTree: tree,
  basepath: "/console",
  defaultPreload: "intent",
  defaultNotFoundComponent: Missing,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
