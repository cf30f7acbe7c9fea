import { type Herald, type HeraldAdmin, HeraldError, type Project, type ProviderView } from "@herald/client";
import type { ProjectState } from "./diff.ts";
import type { ProviderName } from "./project-file.ts";

const providerNames: readonly ProviderName[] = ["apns", "fcm", "webpush"];

/** The sections of a project file that are read. */
type Sections = { readonly [Name in "limits" | "kinds" | "providers" | "tokens" | "webhooks"]?: unknown };

const all = async <Row>(rows: AsyncIterable<Row>): Promise<Row[]> => {
  const found: Row[] = [];
  for await (const row of rows) found.push(row);
  return found;
};

export const findProject = async (admin: HeraldAdmin, key: string): Promise<Project | undefined> => {
  const [found] = await all(admin.projects.list({ key }));
  // An older Herald does not know the filter.
  return found?.key === key ? found : undefined;
};

const readProvider = async (admin: HeraldAdmin, id: string, name: ProviderName): Promise<ProviderView[]> => {
  try {
    return [await admin.providers.get(id, name)];
  } catch (error) {
    if (error instanceof HeraldError && error.slug === "provider-not-found") return [];
    throw error;
  }
};

/** Reads what the project has in the given sections. Tokens are sorted by time, webhooks too. */
export const readProjectState = async (
  admin: HeraldAdmin,
  heraldOf: (id: string) => Herald,
  project: Project,
  sections: Sections,
): Promise<Omit<ProjectState, "written">> => {
  const { id } = project;
  const [limits, kinds, providers, tokens, webhooks] = await Promise.all([
    sections.limits === undefined ? [] : admin.projects.limits(id),
    sections.kinds === undefined ? [] : all(admin.kinds.list(id)),
    sections.providers === undefined ? [] : Promise.all(providerNames.map((name) => readProvider(admin, id, name))),
    sections.tokens === undefined ? [] : all(admin.tokens.list(id)),
    sections.webhooks === undefined ? [] : all(heraldOf(id).webhooks.list()),
  ]);
  return { project, limits, kinds, providers: providers.flat(), tokens, webhooks };
};
