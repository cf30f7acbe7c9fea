import { type EventContract, events } from "@herald/contracts";
import { describeEvents } from "../asyncapi/describe-events.ts";
import { escapeHtml, example, page, prose, table } from "./html.ts";
import { type JsonSchema, renderSchema, typeOf } from "./render-schema.ts";

type Message = { readonly payload: JsonSchema; readonly examples: readonly [{ readonly payload: unknown }] };

/** The catalogue of events as one page. */
export const renderEvents = (): string => {
  const { info, channels, components } = describeEvents();
  const all = Object.values(events) as unknown as EventContract[];
  const headers = Object.values(components.messages)[0]?.headers as JsonSchema | undefined;
  const sections = all.map(({ name, ceType }) => {
    const { payload, examples } = components.messages[name] as unknown as Message;
    return [
      `<section><h3 id="${escapeHtml(name)}"><code>${escapeHtml(ceType)}</code></h3>`,
      `<p>Subject <code>${escapeHtml(String(channels[name]?.address))}</code></p>`,
      renderSchema(payload),
      `<details><summary>Example</summary>${example(examples[0].payload)}</details></section>`,
    ].join("\n");
  });
  return page({
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
