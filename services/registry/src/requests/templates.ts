import { isDeepStrictEqual } from "node:util";
import { handleRequest, type RequestListener } from "@herald/bus";
import {
  DeleteTemplate,
  GetTemplate,
  ListTemplates,
  ListTemplateVersions,
  type ProjectId,
  type PublishedVersion,
  PublishTemplate,
  PutTemplateRequest,
  type Template,
  type TemplateContent,
  type TemplateSummary,
  templateLimits,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { mapPage, pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import type { StoredVersion, TemplateRow } from "../stores/template-store.ts";

const templateNotFound = () => notFound("template-not-found", "name");

const contentOf = ({ content }: { readonly content: string }): TemplateContent => JSON.parse(content);

const isSame = (one: { readonly content: string }, other: { readonly content: string } | undefined): boolean =>
  other !== undefined && (one.content === other.content || isDeepStrictEqual(contentOf(one), contentOf(other)));

const summaryOf = ({ name, draft, published }: TemplateRow): TemplateSummary => ({
  name,
  ...(published && { published: published.version, published_at: published.at.toISOString() }),
  changed: !isSame(draft, published),
  updated_at: draft.at.toISOString(),
});

const viewOf = (row: TemplateRow, version?: StoredVersion): Template => ({
  ...summaryOf(row),
  version: version?.version ?? "draft",
  author: (version ?? row.draft).author,
  content: contentOf(version ?? row.draft),
});

const versionView = ({ version, author, at }: StoredVersion): PublishedVersion => ({
  version,
  author,
  published_at: at.toISOString(),
});

/** Newest first, by a key that sorts as text. */
const newestFirst = ({ version }: StoredVersion): string => String(1e9 - version);

/** Another operator publishes at the same moment, rarely. */
const maxRounds = 20;

export const handleTemplateRequests = (deps: Deps): RequestListener[] => {
  const { bus, templates, projects, templateReplication, publishSoon, now } = deps;
  const findRow = async (projectId: ProjectId, name: string) =>
    existing(await templates.row(projectId, name), templateNotFound);
  const findWhole = async (projectId: ProjectId, name: string) =>
    existing(await templates.find(projectId, name), templateNotFound);

  return [
    handleRequest(bus, PutTemplateRequest, async ({ projectId, name, content, author }) => {
      await projects.requireExisting(projectId);
      const put = await templates.putDraft(projectId, name, { content: JSON.stringify(content), author, at: now() });
      if (put === "full")
        throw new HeraldError(
          "template-limit",
          `name: the project has ${templateLimits.perProject} templates, the maximum`,
        );
      if (put === "deleting")
        throw new HeraldError(
          "database-unavailable",
          `name: \`${name}\` is being deleted; its name is free in a moment`,
          {
            retryAfterSeconds: 1,
          },
        );
      return { template: viewOf(put.row), created: put.created };
    }),

    handleRequest(bus, GetTemplate, async ({ projectId, name, version }) => {
      if (version === undefined) return viewOf(await findRow(projectId, name));
      const template = await findWhole(projectId, name);
      const found = template.versions.find((one) => one.version === version);
      return viewOf(
        template,
        existing(found, () => notFound("template-not-found", "version")),
      );
    }),

    handleRequest(bus, ListTemplates, async ({ projectId, page }) =>
      mapPage(await templates.list(projectId, page), summaryOf),
    ),

    handleRequest(bus, ListTemplateVersions, async ({ projectId, name, page }) => {
      const { versions } = await findWhole(projectId, name);
      return mapPage(pageOfRows(versions, { request: page, key: newestFirst }), versionView);
    }),

    handleRequest(bus, PublishTemplate, async ({ projectId, name, author }) => {
      for (let round = 0; round < maxRounds; round++) {
        const before = await findWhole(projectId, name);
        const published = isSame(before.draft, before.published)
          ? before
          : await templates.publish(eventContext(projectId, now()), before, author);
        if (published?.published === undefined) continue;
        // Also for a version that an earlier attempt published, because it may have ended before this.
        await templateReplication.replicate(published);
        publishSoon.templates(projectId, [published._id]);
        return { version: published.published.version };
      }
      throw new Error(`the template ${projectId}/${name} changes too often`);
    }),

    handleRequest(bus, DeleteTemplate, async ({ projectId, name }) => {
      const deleted = existing(await templates.markDeleted(projectId, name, now()), templateNotFound);
      await templateReplication.replicate(deleted);
      return {};
    }),
  ];
};
