/**
 * Search and the try-it form of the documentation pages. The content security policy allows it by its hash. It calls only this gateway,
 * writes only text into the page, and stores nothing: closing the page discards the input.
 */
export const pageScript = `
const search = document.querySelector("#search");
const found = [...document.querySelectorAll("main section, main > table tbody tr")].map((part) => ({ part, text: part.textContent.toLowerCase() }));
const filter = () => {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const { part, text } of found) {
    part.hidden = !words.every((word) => text.includes(word));
    if (!part.hidden) shown++;
  }
  for (const link of document.querySelectorAll("nav li a[href^='#']")) {
    const target = document.getElementById(link.hash.slice(1))?.closest("main section");
    if (target) link.parentElement.hidden = target.hidden;
  }
  document.querySelector("#found").textContent = words.length === 0 ? "" : shown + " found";
};
search.parentElement.hidden = false;
search.addEventListener("input", filter);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    filter();
  }
  if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  search.focus();
});

let token = "";
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const field = (name, properties) => {
  const input = make("input", { name, autocomplete: "off", spellcheck: false, ...properties });
  return [make("label", {}, name, input), input];
};
const build = (details) => {
  const { method, path, params, secret } = JSON.parse(details.dataset.try);
  const rows = [];
  const inputs = params.map(({ name, where }) => {
    const [row, input] = field(name, { placeholder: where });
    rows.push(row);
    return { name, where, input };
  });
  let credential;
  if (secret) {
    const [row, input] = field("token", { type: "password", value: token, placeholder: secret });
    credential = input;
    rows.unshift(row);
  }
  const example = details.closest("section").querySelector(".request");
  const body = example && make("textarea", { rows: 10, spellcheck: false, value: example.textContent });
  if (body) rows.push(make("label", {}, "body", body));
  const answer = make("pre", { hidden: true, tabIndex: 0 });
  const send = async () => {
    answer.hidden = false;
    answer.textContent = "…";
    const query = new URLSearchParams();
    let target = path;
    for (const { name, where, input } of inputs) {
      if (where === "path") target = target.replace("{" + name + "}", encodeURIComponent(input.value));
      else if (input.value !== "") query.set(name, input.value);
    }
    if (credential) token = credential.value;
    const headers = { ...(token && secret && { authorization: "Bearer " + token }), ...(body && { "content-type": "application/json" }) };
    try {
      const url = target + (query.size > 0 ? "?" + query : "");
      const response = await fetch(url, { method: method.toUpperCase(), headers, body: body?.value, credentials: "omit" });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      answer.textContent = method.toUpperCase() + " " + url + "\\n" + response.status + " " + response.statusText + "\\n\\n" + shown;
    } catch (error) {
      answer.textContent = "No answer: " + error.message;
    }
  };
  details.append(...rows, make("button", { type: "button", textContent: "Send", onclick: send }), answer);
};
for (const details of document.querySelectorAll("details[data-try]")) {
  details.hidden = false;
  details.addEventListener("toggle", () => build(details), { once: true });
}
`;
