import type {
  NewPreview,
  NewTemplate,
  PublishedVersion,
  Template,
  TemplatePreview,
  TemplateSummary,
} from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list } from "./list.ts";

export const createTemplates = (http: Http) => ({
  /** Stores the draft of a template; it is created if it does not exist. Needs the scope `templates`. */
  put: (name: string, template: NewTemplate, options?: CallOptions) =>
    http.put<Template>(path`/templates/${name}`, options, { template }),
  /** The draft, or a published version. */
  get: (name: string, options?: CallOptions & { readonly version?: number | "draft" | undefined }) => {
    const { version, ...call } = options ?? {};
    return http.get<Template>(path`/templates/${name}`, { ...call, query: { version } });
  },
  list: (options?: ListOptions) => list<TemplateSummary>(http, "/templates", options),
  /** The last hundred versions, newest first. */
  versions: (name: string, options?: ListOptions) =>
    list<PublishedVersion>(http, path`/templates/${name}/versions`, options),
  /** Makes the draft the version that sends use. Unchanged content keeps its version. Needs the scope `templates`. */
  publish: (name: string, options?: PostOptions) =>
    http.post<{ version: number }>(path`/templates/${name}/publish`, options),
  /** Renders a stored version, the draft, or a `content` that is not stored. Sends and stores nothing. */
  preview: (name: string, preview: NewPreview, options?: CallOptions) =>
    http.post<TemplatePreview>(path`/templates/${name}/preview`, options, { preview }),
  /** Needs the scope `templates`. */
  delete: (name: string, options?: CallOptions) => http.remove(path`/templates/${name}`, options),
});
