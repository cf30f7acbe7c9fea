import { batchedTypes, deliveryReasons, type EventContract, errors, events, type Retry } from "@herald/contracts";
import { describeEvents } from "./describe-events.ts";
import {
  escapeHtml,
  example,
  htmlPage,
  type JsonSchema,
  nameOf,
  prose,
  renderSchema,
  table,
  typeOf,
} from "./render-schema.ts";

type Content = Readonly<Record<string, { readonly schema?: JsonSchema; readonly example?: unknown }>>;
type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly {
    name: string;
    in: string;
    required?: boolean;
    description?: string;
    schema: JsonSchema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, ApiResponse | { readonly $ref: string }>>;
};
type ApiResponse = { readonly description: string; readonly content?: Content };

/** The part of an OpenAPI document that the page shows. */
export type ApiDocument = {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, ApiResponse>>;
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>;
  };
};

type Found = { readonly path: string; readonly method: string; readonly operation: Operation };

const operationsOf = (document: ApiDocument): Found[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

const heading = ({ path, method }: Found): string =>
  `<span class="method">${escapeHtml(method)}</span><code>${escapeHtml(path)}</code>`;

const credentials = ({ security }: Operation, { components }: ApiDocument): string => {
  const words = security.map((alternative, at) => {
    const [[name, needs] = []] = Object.entries(alternative);
    if (name === undefined || needs === undefined) return "none; the body says who calls";
    const about = components.securitySchemes[name]?.description ?? name;
    const named = needs.map((need) => `\`${need}\``).join(" and ");
    const sentence = about.replace(/\.$/, "").replace(/the route's (scope|role)/, `the $1 ${named}`);
    return prose(at === 0 ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1));
  });
  return `${words.join(". Or ")}.`;
};

const responseOf = (response: Operation["responses"][string], { components }: ApiDocument): ApiResponse =>
  "$ref" in response ? (components.responses[nameOf(response.$ref)] ?? { description: "" }) : response;

const renderAnswers = ({ responses }: Operation, document: ApiDocument): string =>
  table(
    ["status", "", "body"],
    Object.entries(responses).map(([status, response]) => {
      const { description, content } = responseOf(response, document);
      const schema = Object.values(content ?? {})[0]?.schema;
      const fields = Object.entries(schema?.properties ?? {}).map(
        ([name, field]) => `<code>${escapeHtml(name)}</code>: ${typeOf(field)}`,
      );
      const body = schema === undefined ? "" : fields.length > 0 ? fields.join(", ") : typeOf(schema);
      return [`<code>${status}</code>`, prose(description), body];
    }),
  );

/** The example bodies of successful responses. */
const renderSuccess = ({ responses }: Operation, document: ApiDocument): string =>
  Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([status, response]) =>
      Object.values(responseOf(response, document).content ?? {}).map(
        (media) => `<p class="note">Example of ${status}</p>${example(media.example)}`,
      ),
    )
    .join("");

/** The data from which the script builds the form; empty for streams, because their responses never end. */
const renderTry = ({ path, method, operation }: Found, document: ApiDocument): string => {
  if (
    Object.values(operation.responses).some((response) => responseOf(response, document).content?.["text/event-stream"])
  )
    return "";
  const params = (operation.parameters ?? [])
    .filter(({ in: where }) => where !== "header")
    .map(({ name, in: where }) => ({ name, where }));
  const [secret = ""] = operation.security.flatMap((alternative) => Object.keys(alternative));
  const form = JSON.stringify({ method, path, params, secret });
  return `<details hidden data-try="${escapeHtml(form)}"><summary>Try it</summary></details>`;
};

const renderOperation = (found: Found, document: ApiDocument): string => {
  const { operation } = found;
  const parameters = (operation.parameters ?? []).map(({ name, in: where, required, description, schema }) => [
    `<code>${escapeHtml(name)}</code> <span class="note">${escapeHtml(where)}</span>`,
    typeOf(schema),
    [required === true ? "<strong>required</strong>" : "", prose(description ?? schema.description ?? "")].join(" "),
  ]);
  const [request] = Object.values(operation.requestBody?.content ?? {});
  const body = request?.schema;
  return [
    `<section><h3 id="${escapeHtml(operation.operationId)}">${heading(found)}</h3>`,
    `<p>${prose(operation.summary)}. ${prose(operation.description ?? "")}</p>`,
    `<p class="note">Credential: ${credentials(operation, document)}</p>`,
    parameters.length === 0 ? "" : table(["parameter", "type", ""], parameters),
    body === undefined
      ? ""
      : `<details open><summary>Body</summary>${body.$ref ? `<p>${typeOf(body)}</p>` : renderSchema(body)}${example(request?.example, "request")}</details>`,
    `<details><summary>Answers</summary>${renderAnswers(operation, document)}${renderSuccess(operation, document)}</details>`,
    renderTry(found, document),
    "</section>",
  ].join("\n");
};

/** The reference as one page: operations by tag, then every named schema. */
export const renderReference = (document: ApiDocument): string => {
  const byTag = Map.groupBy(operationsOf(document), ({ operation }) => operation.tags[0] ?? "");
  const schemas = Object.entries(document.components.schemas).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const link = (found: Found) =>
    `<li><a href="#${escapeHtml(found.operation.operationId)}">${escapeHtml(found.operation.summary)}</a></li>`;
  const { title, version, description } = document.info;
  return htmlPage({
    title: `${title} reference`,
    nav: [
      `<strong>${escapeHtml(title)}</strong> <span class="note">${escapeHtml(version)}</span>`,
      '<ul><li><a href="/docs/errors">Errors</a></li><li><a href="/docs/events">Events</a></li><li><a href="/openapi.json">OpenAPI document</a></li></ul>',
      ...[...byTag].map(
        ([tag, found]) =>
          `<div class="group"><strong>${escapeHtml(tag)}</strong><ul>${found.map(link).join("")}</ul></div>`,
      ),
      '<strong><a href="#schemas">Schemas</a></strong>',
    ].join("\n"),
    main: [
      `<h1>${escapeHtml(title)}</h1><p>${prose(description)}</p>`,
      ...[...byTag].map(
        ([tag, found]) =>
          `<div class="group"><h2>${escapeHtml(tag)}</h2>${found.map((one) => renderOperation(one, document)).join("\n")}</div>`,
      ),
      '<div class="group"><h2 id="schemas">Schemas</h2>',
      ...schemas.map(
        ([name, schema]) =>
          `<section><h3 id="schema-${escapeHtml(name)}">${escapeHtml(name)}</h3>${renderSchema(schema)}</section>`,
      ),
      "</div>",
    ].join("\n"),
  });
};

const again: Record<Retry, string> = {
  never: "Only after a change.",
  later: "Yes, after `Retry-After`.",
  unavailable: "Yes, after `Retry-After`: nothing was lost.",
};

const anchor = (slug: string): string => `<code id="${escapeHtml(slug)}">${escapeHtml(slug)}</code>`;

/** The meaning of every error and delivery reason. The `type` of an error response links here. */
export const renderErrors = (): string =>
  htmlPage({
    title: "Herald errors",
    nav: '<strong>Herald</strong><ul><li><a href="/docs">Reference</a></li><li><a href="#errors">Errors</a></li><li><a href="#reasons">Delivery reasons</a></li></ul>',
    main: [
      '<h1>Errors</h1><p id="errors">Every error is <code>application/problem+json</code>. <code>errors</code> lists every problem with its field, <code>type</code> links to the row on this page, and <code>instance</code> is the request id that the log has too.</p>',
      table(
        ["error", "status", "meaning", "retry?"],
        Object.entries(errors).map(([slug, { status, title, retry }]) => [
          anchor(slug),
          String(status),
          prose(title),
          prose(slug === "request-in-progress" ? again.later : again[retry]),
        ]),
      ),
      '<h2 id="reasons">Delivery reasons</h2><p>Why a device did not get a notification: the <code>reason</code> of a delivery, and the keys of <code>failures</code> and <code>skips</code>.</p>',
      table(
        ["reason", "meaning"],
        Object.entries(deliveryReasons).map(([slug, meaning]) => [
          `<code id="reason-${escapeHtml(slug)}">${escapeHtml(slug)}</code>`,
          prose(meaning),
        ]),
      ),
    ].join("\n"),
  });

type Message = { readonly payload: JsonSchema; readonly examples: readonly [{ readonly payload: unknown }] };

/** The catalogue of events as one page. */
export const renderEvents = (): string => {
  const { info, channels, components } = describeEvents();
  const all = Object.values(events) as unknown as EventContract[];
  const headers = Object.values(components.messages)[0]?.headers as JsonSchema | undefined;
  const sections = all.map(({ name, ceType }) => {
    const { payload, examples } = components.messages[name] as unknown as Message;
    const shares = batchedTypes.has(ceType) ? "; may share a message with others of its type" : "";
    return [
      `<section><h3 id="${escapeHtml(name)}"><code>${escapeHtml(ceType)}</code></h3>`,
      `<p>Subject <code>${escapeHtml(String(channels[name]?.address))}</code>${shares}</p>`,
      renderSchema(payload),
      `<details><summary>Example</summary>${example(examples[0].payload)}</details></section>`,
    ].join("\n");
  });
  return htmlPage({
    title: info.title,
    nav: [
      `<strong>${escapeHtml(info.title)}</strong> <span class="note">${escapeHtml(info.version)}</span>`,
      '<ul><li><a href="/docs">Reference</a></li><li><a href="/docs/errors">Errors</a></li><li><a href="/asyncapi.json">AsyncAPI document</a></li></ul>',
      `<div class="group"><ul>${all.map(({ name, ceType }) => `<li><a href="#${escapeHtml(name)}">${escapeHtml(ceType.slice("io.herald.".length, -".v1".length))}</a></li>`).join("")}</ul></div>`,
    ].join("\n"),
    main: [
      `<h1>${escapeHtml(info.title)}</h1><p>${prose(info.description)}</p>`,
      '<h2 id="headers">Headers</h2>',
      table(
        ["header", "", ""],
        Object.entries(headers?.properties ?? {}).map(([name, schema]) => [
          `<code>${escapeHtml(name)}</code>`,
          name === "ce-type" ? "the event's type, below" : typeOf(schema),
          prose(schema.description ?? ""),
        ]),
      ),
      `<div class="group"><h2>Events</h2>${sections.join("\n")}</div>`,
    ].join("\n"),
  });
};
