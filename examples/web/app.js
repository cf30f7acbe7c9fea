import { createHerald } from "/herald.js";

const { gateway, project } = await (await fetch("/config.json")).json();
const element = (id) => document.getElementById(id);

const hints = {
  unsupported:
    "This browser cannot receive notifications here. On an iPhone or iPad, add this site to the home screen, and open it there.",
  denied: "You blocked notifications. Allow them in your browser's settings for this site.",
  default: "",
  granted: "",
};

const show = (status) => {
  const { permission, problem, subscribed, topics } = status;
  element("hint").textContent = hints[permission] || (problem?.message ?? "");
  element("badge").textContent = subscribed ? "Notifications are on" : "Notifications are off";
  element("badge").dataset.on = subscribed;
  element("subscribe").classList.toggle("primary", !subscribed);
  element("subscribe").hidden = hints[permission] !== "";
  element("subscribe").textContent = subscribed ? "Register again" : "Turn on notifications";
  element("unsubscribe").hidden = !subscribed;
  element("news").checked = topics.includes("news");
  element("status").textContent = JSON.stringify(status, null, 2);
};

const showPush = ({ notification, data }) => {
  const item = document.createElement("li");
  item.textContent = notification?.title ?? JSON.stringify(data);
  element("pushes").append(item);
};

/** A switch for each kind of notifications that the project declares. */
const showKinds = ({ kinds, problem }) => {
  if (problem && problem.slug !== "not-subscribed") element("hint").textContent = problem.message;
  element("kinds").replaceChildren(
    ...kinds.map(({ kind, title, on, critical }) => {
      const label = Object.assign(document.createElement("label"), { className: "switch" });
      const input = Object.assign(document.createElement("input"), {
        type: "checkbox",
        checked: on,
        disabled: critical,
      });
      input.name = kind;
      input.onchange = async () => showKinds(await herald.preferences.set({ [kind]: input.checked }));
      label.append(input, " ", Object.assign(document.createElement("span"), { textContent: title }));
      return label;
    }),
  );
};

const herald = createHerald({ gateway, project, onChange: show, onPush: showPush });

/** This site's backend. */
const post = async (path, body) => {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
};
const send = (...targets) =>
  post("/send", {
    notification: {
      title: "Order 42 has shipped",
      kind: "order-shipped",
      body: "It arrives tomorrow before noon.",
      link_to: "/inbox",
      targets,
      receipts: true,
      buttons: [
        { id: "track", title: "Track", link_to: "/orders/42" },
        { id: "later", title: "Remind me", opens: false },
      ],
    },
  });

const refreshKinds = async () => showKinds(await herald.preferences.get());
element("subscribe").onclick = async () => {
  await herald.subscribe();
  await refreshKinds();
};
element("unsubscribe").onclick = async () => {
  await herald.unsubscribe();
  await refreshKinds();
};
element("login").onclick = async () => {
  const { user_token } = await post("/session", { user: element("user").value });
  await herald.login(user_token);
};
element("logout").onclick = () => herald.logout();
element("news").onchange = ({ target }) => (target.checked ? herald.topics.add("news") : herald.topics.remove("news"));
element("send-device").onclick = async () => send((await herald.start()).device);
element("send-user").onclick = () => send(`user:${element("user").value}`);
element("send-topic").onclick = () => send("topic:news");

// Last, so that no click is lost while the page waits for Herald.
const status = await herald.start();
await refreshKinds();
// Tests wait for this attribute.
document.body.dataset.ready = String(status.permission);
