import { randomBytes } from "node:crypto";
import type { Rule } from "../types.ts";

const style = `
:root { color-scheme: light dark; --ink: #10131a; --soft: #5b6472; --card: #ffffffd9; --line: #0000001a; --back: linear-gradient(160deg, #cfdcf2, #efe3ee 55%, #f6eadb);
  --good: #14713d; --bad: #a8231a; --wait: #7a5200; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #f2f4f8; --soft: #a9b1c0; --card: #252b38e0; --line: #ffffff1f; --back: linear-gradient(160deg, #141b2b, #251c30 55%, #2b2320);
    --good: #6fd79c; --bad: #ff9a90; --wait: #f0c36a; }
}
* { box-sizing: border-box; }
html { min-height: 100%; background: var(--back) fixed; }
body { margin: 0; font: 16px/1.45 system-ui, sans-serif; color: var(--ink); }
main { max-width: 34rem; margin: 0 auto; padding: 2.5rem 1rem 4rem; }
header { text-align: center; margin-bottom: 1.5rem; }
#clock { font-size: clamp(2.5rem, 16vw, 4.5rem); white-space: nowrap; font-weight: 300; line-height: 1; font-variant-numeric: tabular-nums; }
#date, #state { color: var(--soft); }
#state { font-size: .875rem; margin-top: .5rem; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; justify-content: center; margin-bottom: 1rem; }
button { font: inherit; font-size: .875rem; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 999px; padding: .3rem .9rem; cursor: pointer; }
button[aria-pressed="true"] { outline: 2px solid currentColor; outline-offset: -1px; }
ol { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: minmax(0, 1fr); gap: .6rem; }
li { background: var(--card); border: 1px solid var(--line); border-radius: 1.1rem; padding: .8rem 1rem; }
@media (prefers-reduced-motion: no-preference) { li.new { animation: drop .35s ease-out; } @keyframes drop { from { opacity: 0; transform: translateY(-.8rem); } } }
.top { display: flex; flex-wrap: wrap; gap: 0 .6rem; align-items: baseline; font-size: .8125rem; color: var(--soft); }
.top time { margin-left: auto; }
.platform { font-weight: 600; letter-spacing: .02em; }
h2 { font-size: 1rem; margin: .2rem 0 0; overflow-wrap: anywhere; }
p { margin: .1rem 0 0; overflow-wrap: anywhere; white-space: pre-line; }
.link, .token { font: .8125rem/1.4 ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
.good { color: var(--good); } .bad { color: var(--bad); } .wait { color: var(--wait); }
.problem { font-size: .8125rem; }
details { margin-top: .3rem; font-size: .8125rem; color: var(--soft); }
pre { overflow: auto; max-height: 20rem; margin: .4rem 0 0; color: var(--ink); }
.open { margin-top: .5rem; font-size: .8125rem; }
fieldset { border: 1px solid var(--line); border-radius: 1.1rem; background: var(--card); margin: 0 0 1rem; padding: .4rem 1rem .7rem; display: flex; flex-wrap: wrap; gap: .35rem 1rem; font-size: .875rem; }
legend { color: var(--soft); font-size: .8125rem; padding: 0 .3rem; }
label { display: inline-flex; gap: .4rem; align-items: center; }
#empty { text-align: center; color: var(--soft); padding: 2rem 0; }
`;

/** Inserts all external data as text, never as markup. */
const script = `
const names = { apns: "APNs · iOS", fcm: "FCM · Android", webpush: "Web Push" };
const max = 200;
const list = document.querySelector("ol");
const empty = document.querySelector("#empty");
const state = document.querySelector("#state");
const gateway = document.body.dataset.gateway;
let only = "";
let total = 0;

const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const short = (token) => token.length > 44 ? token.slice(0, 20) + "…" + token.slice(-20) : token;

/** Title, body and link, wherever the provider's form has them. */
const read = (payload) => {
  const p = payload && typeof payload === "object" ? payload : {};
  const alert = p.aps?.alert;
  const source = typeof alert === "string" ? { body: alert } : alert ?? p.notification ?? p.android?.notification ?? p.webpush?.notification ?? p.data ?? p;
  const title = source.title ?? source["title-loc-key"] ?? p.data?.title;
  const body = source.body ?? source["loc-key"] ?? p.data?.body ?? (typeof payload === "string" ? payload : undefined);
  const link = p.link_to ?? p.data?.link_to ?? source.link_to ?? p.webpush?.fcm_options?.link;
  return { title, body, link };
};

const answerOf = (push) => {
  if (push.status === null) return { text: "no answer: " + push.broken, tone: "wait" };
  const good = push.status >= 200 && push.status < 300;
  return { text: push.status + (push.reason ? " " + push.reason : ""), tone: good ? "good" : "bad" };
};

/** As the app does when a person taps: once is enough. */
const opener = (push) => {
  const p = push.payload?.data?.notification_id ? push.payload.data : push.payload;
  if (!gateway || !p?.notification_id || !p.token || push.status === null || push.status >= 300) return undefined;
  const button = make("button", "open", "Open");
  button.type = "button";
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await fetch(gateway + "/api/v1/notifications/" + p.notification_id + "/open", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ project_id: p.project_id, token: p.token }),
    }).catch(() => undefined);
    button.disabled = answer?.ok === true;
    button.textContent = answer?.ok ? "Opened" : "Open: " + (answer ? "answered " + answer.status : "no answer") + ", try again";
  });
  return button;
};

const card = (push) => {
  const item = make("li", "new");
  item.dataset.provider = push.provider;
  item.hidden = only !== "" && only !== push.provider;
  const top = make("div", "top");
  const { text, tone } = answerOf(push);
  const time = make("time", "", new Date(push.at).toLocaleTimeString());
  time.dateTime = push.at;
  top.append(make("span", "platform", names[push.provider]), make("span", tone, text), time);
  const { title, body, link } = read(push.payload);
  item.append(top, make("h2", "", title ?? (body === undefined ? "Silent push" : "No title")));
  if (body !== undefined) item.append(make("p", "", body));
  if (link !== undefined) item.append(make("div", "link", "→ " + link));
  const open = opener(push);
  if (open) item.append(open);
  if (push.problem) item.append(make("div", "bad problem", push.problem));
  const more = make("details");
  const summary = make("summary", "token", short(push.token));
  more.append(summary);
  more.addEventListener("toggle", () => {
    if (more.open && more.children.length === 1) more.append(make("pre", "", JSON.stringify({ token: push.token, headers: push.headers, payload: push.payload }, null, 2)));
  });
  item.append(more);
  return item;
};

const source = new EventSource("events");
source.onopen = () => { state.textContent = "Waiting for pushes"; };
source.onerror = () => { state.textContent = "The simulators are unavailable; trying again"; };
source.onmessage = ({ data }) => {
  list.prepend(card(JSON.parse(data)));
  while (list.children.length > max) list.lastElementChild.remove();
  total += 1;
  empty.hidden = true;
  state.textContent = "Last push at " + new Date().toLocaleTimeString();
};

for (const button of document.querySelectorAll("button[data-only]")) {
  button.addEventListener("click", () => {
    only = button.dataset.only;
    for (const other of document.querySelectorAll("button[data-only]")) other.setAttribute("aria-pressed", String(other === button));
    for (const item of list.children) item.hidden = only !== "" && only !== item.dataset.provider;
  });
}
document.querySelector("#clear").addEventListener("click", async () => {
  await fetch("pushes", { method: "DELETE" });
  list.replaceChildren();
  empty.hidden = false;
});

/** Each switch is one rule of the script, and the first that matches decides: in the order of the page, before rules from elsewhere. */
const switches = [...document.querySelectorAll("input[data-rule]")];
const sameRule = (rule, one) => JSON.stringify(rule) === JSON.stringify(JSON.parse(one.dataset.rule));
const rulesNow = async () => (await (await fetch("script")).json()).rules.map(({ used, ...rule }) => rule);
const showSwitches = (rules) => {
  for (const one of switches) one.checked = rules.some((rule) => sameRule(rule, one));
};
const save = async () => {
  const others = (await rulesNow()).filter((rule) => !switches.some((known) => sameRule(rule, known)));
  const chosen = switches.filter(({ checked }) => checked).map(({ dataset }) => JSON.parse(dataset.rule));
  await fetch("script", { method: "PUT", body: JSON.stringify([...chosen, ...others]) });
};
// One after another: the last has what is switched on then.
let saving = Promise.resolve();
for (const one of switches) one.addEventListener("change", () => { saving = saving.then(save, save); });
rulesNow().then(showSwitches);

const tick = () => {
  const now = new Date();
  document.querySelector("#clock").textContent = now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  document.querySelector("#date").textContent = now.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
};
tick();
setInterval(tick, 1000);
`;

/** Failures of the push services, as rules of the script. */
const failures: readonly (readonly [label: string, rule: Rule])[] = [
  ["APNs: app removed", { provider: "apns", status: 410 }],
  ["APNs: wrong key", { provider: "apns", status: 403, reason: "InvalidProviderToken" }],
  ["APNs: overloaded", { provider: "apns", status: 503 }],
  ["FCM: app removed", { provider: "fcm", status: 404 }],
  ["FCM: over quota", { provider: "fcm", status: 429 }],
  ["Web Push: unsubscribed", { provider: "webpush", status: 410 }],
  ["All: answer after 2 s", { delayMs: 2000 }],
  ["All: no answer", { hang: true }],
];

const attribute = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

const switchesOf = failures
  .map(
    ([label, rule]) => `<label><input type="checkbox" data-rule="${attribute(JSON.stringify(rule))}">${label}</label>`,
  )
  .join("\n");

const document = (nonce: string, gateway: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Herald: pushes as they arrive</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
</head>
<body data-gateway="${attribute(gateway)}">
<main>
<header>
<div id="clock" aria-hidden="true"></div>
<div id="date"></div>
<div id="state" role="status">Connecting</div>
</header>
<nav aria-label="Which pushes are shown">
<button type="button" data-only="" aria-pressed="true">All</button>
<button type="button" data-only="apns" aria-pressed="false">APNs</button>
<button type="button" data-only="fcm" aria-pressed="false">FCM</button>
<button type="button" data-only="webpush" aria-pressed="false">Web Push</button>
<button type="button" id="clear">Clear</button>
</nav>
<fieldset>
<legend>What goes wrong</legend>
${switchesOf}
</fieldset>
<ol aria-label="Pushes, newest first" aria-live="polite"></ol>
<div id="empty">Nothing arrived yet. Send a notification and it shows up here.</div>
</main>
<script nonce="${nonce}">${script}</script>
</body>
</html>
`;

/**
 * A lock screen that shows pushes as they arrive: one HTML file without external resources, and its Content-Security-Policy. Opens go to
 * the gateway, if its origin is known.
 */
export function lockScreenPage(gateway = ""): { readonly html: string; readonly policy: string } {
  const nonce = randomBytes(16).toString("base64");
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'${gateway === "" ? "" : ` ${gateway}`}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return { html: document(nonce, gateway), policy };
}
