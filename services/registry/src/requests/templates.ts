import { handleRequest, type RequestListener, shareOfRoom } from "@herald/bus";
import {
  type ProjectId,
  type PublishedVersion,
  settingsFingerprint,
  type Template,
  type TemplateSummary,
  templateLimits,
  templateRequests,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { mapPage, pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import type { StoredVersion, TemplateDocument, TemplateRow } from "../stores/template-store.ts";

const templateNotFound = () => notFound("template-not-found", "name");

const summaryOf = ({ name, draft, published }: TemplateRow): TemplateSummary => ({
  name,
  ...(published && { published: published.version, published_at: published.at.toISOString() }),
  changed: draft.digest !== published?.digest,
  updated_at: draft.at.toISOString(),
});

const viewOf = (row: TemplateRow, content: string, version?: StoredVersion): Template => ({
  ...summaryOf(row),
  version: version?.version ?? "draft",
  author: (version ?? row.draft).author,
  content: JSON.parse(content),
});

const versionView = ({ version, author, at }: StoredVersion): PublishedVersion => ({
  version,
  author,
  published_at: at.toISOString(),
});

/** Newest first, by a key that sorts as text. */
const newestFirst = ({ version }: StoredVersion): string => String(1e9 - version);

/** Another operator writes at the same moment, rarely. */
const maxRounds = 20;

const changesTooOften = (projectId: ProjectId, name: string) =>
  new Error(`the template ${projectId}/${name} changes too often`);

export const handleTemplateRequests = (
  deps: Pick<Deps, "bus" | "now" | "projects" | "publishSoon" | "templateReplication" | "templateRoom" | "templates">,
): RequestListener[] => {
  const { bus, templates, projects, templateReplication, templateRoom, publishSoon, now } = deps;
  const findTemplate = async (projectId: ProjectId, name: string) =>
    existing(await templates.find(projectId, name), templateNotFound);

  /** Throws template-limit when the published templates of the project take more than its share of the bucket. */
  const checkRoom = async ({ projectId, name, draft, published }: TemplateDocument): Promise<void> => {
    if (draft.bytes <= (published?.bytes ?? 0)) return;
    const [fill, sizes] = await Promise.all([templateRoom(), templates.publishedBytes(projectId)]);
    const bytes = [...sizes].reduce((sum, [other, size]) => sum + (other === name ? 0 : size), draft.bytes);
    const limit = shareOfRoom(fill);
    if (bytes > limit)
      throw new HeraldError(
        "template-limit",
        `template: the published templates of the project would take ${bytes} bytes, and at most ${limit} are accepted while the room of all projects is nearly used up; delete or shorten some`,
      );
  };

  return [
    handleRequest(bus, templateRequests.put, async ({ projectId, name, content, author }) => {
      await projects.requireExisting(projectId);
      const text = JSON.stringify(content);
      const draft = { content: text, digest: settingsFingerprint(content), author, at: now() };
      const put = await templates.putDraft(projectId, name, draft);
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
      return { template: viewOf(put.row, text), created: put.created };
    }),

    handleRequest(bus, templateRequests.get, async ({ projectId, name, version: wanted }) => {
      for (let round = 0; round < maxRounds; round++) {
        const row = await findTemplate(projectId, name);
        const version =
          wanted === undefined
            ? undefined
            : existing(
                row.versions.find((one) => one.version === wanted),
                () => notFound("template-not-found", "version"),
              );
        const content = await templates.content(projectId, version ?? row.draft);
        // Absent: another draft was written meanwhile.
        if (content !== undefined) return viewOf(row, content, version);
      }
      throw changesTooOften(projectId, name);
    }),

    handleRequest(bus, templateRequests.list, async ({ projectId, page }) =>
      mapPage(await templates.list(projectId, page), summaryOf),
    ),

    handleRequest(bus, templateRequests.versions, async ({ projectId, name, page }) => {
      const { versions } = await findTemplate(projectId, name);
      return mapPage(pageOfRows(versions, { request: page, key: newestFirst }), versionView);
    }),

    handleRequest(bus, templateRequests.publish, async ({ projectId, name, author }) => {
      for (let round = 0; round < maxRounds; round++) {
        const before = await findTemplate(projectId, name);
        const isSame = before.draft.digest === before.published?.digest;
        if (!isSame) await checkRoom(before);
        const published = isSame ? before : await templates.publish(eventContext(projectId, now()), before, author);
        if (published?.published === undefined) continue;
        // Also for a version that an earlier attempt published, because it may have ended before this.
        await templateReplication.replicate(published);
        publishSoon.templates(projectId, [published._id]);
        return { version: published.published.version };
      }
      throw changesTooOften(projectId, name);
    }),

    handleRequest(bus, templateRequests.delete, async ({ projectId, name }) => {
      const deleted = existing(await templates.markDeleted(projectId, name, now()), templateNotFound);
      await templateReplication.replicate(deleted);
      return {};
    }),
  ];
};
