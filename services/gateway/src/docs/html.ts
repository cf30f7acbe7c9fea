import { hash } from "node:crypto";

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");

/** A sentence of a description: text with `code` in backticks, nothing else. */
export const prose = (text: string): string =>
  escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>")
    .replaceAll("\n\n", "</p><p>");

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0a6b5e }
@media (prefers-color-scheme: dark) { :root { --accent: #4cc9b4 } }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); font-size: .9rem }
nav ul { list-style: none; margin: .25rem 0 1rem; padding: 0 } nav li { padding: .1rem 0 }
main { padding: 2rem; max-width: 62rem }
a { color: var(--accent); text-decoration: none } a:hover { text-decoration: underline }
h1 { margin-top: 0 } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) } h3 { margin: 2.5rem 0 .25rem }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere }
.method { font: 700 .75em ui-monospace, monospace; text-transform: uppercase; color: var(--accent); margin-right: .5em }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .93rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } :target { scroll-margin-top: 1rem; outline: 2px solid var(--accent); outline-offset: 4px }
details { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: .5rem 0 } summary { cursor: pointer; font-weight: 600 }
.note { opacity: .75; font-size: .9em }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; border: 0 } main { padding: 1rem } }
`;

/** The page runs no script and loads nothing; its one style sheet is allowed by its hash. */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${hash("sha256", style, "base64")}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** A whole page from parts that are HTML already. */
export const page = ({ title, nav, main }: { title: string; nav: string; main: string }): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><nav>${nav}</nav><main>${main}</main></body></html>
`;

/** A table from rows of cells that are HTML already. */
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string => {
  const head = heads.map((cell) => `<th>${escapeHtml(cell)}</th>`).join("");
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("\n");
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
};
