"use strict";
// Draws the picture that /events sends. Elements are kept from one picture to the next, so that the focus stays where it is.

const token = document.querySelector("meta[name=token]").content;
const byId = (id) => document.getElementById(id);

/** An element with a class and its children. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function svg(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function classes(element, text) {
  if (element.getAttribute("class") !== text) element.setAttribute("class", text);
}

/** Makes the children be one for each item, by key; what stays is not moved. */
function list(parent, items, key, create, update) {
  parent.kept ??= new Map();
  const wanted = new Set(items.map(key));
  for (const [name, element] of parent.kept) {
    if (wanted.has(name)) continue;
    element.remove();
    parent.kept.delete(name);
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let element = parent.kept.get(name);
    if (!element) {
      element = create(item);
      parent.kept.set(name, element);
    }
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
    update(element, item);
  }
}

/** With long IDs cut, and a thing's word and ID for its URL. An ID that a plan made up is "new": the cloud chooses the real one later. */
function short(text) {
  return text
    .replace(/\bhttps?:\/\/[^\s()]*?\/([a-z-]+?)s?\/([0-9a-f-]{36})(?![^\s()])/g, "$1 $2")
    .replace(/\b0{8}-0{4}-0{4}-0{4}-0{7}[0-9a-f]{5}\b/g, "new")
    .replace(/\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "$1…")
    .replace(/\b([0-9a-f]{8})[0-9a-f]{16,}\b/g, "$1…");
}

/** Text beside a dot; the words say what the colour says. */
function state(element, tone, text) {
  classes(element, `state ${tone}`);
  say(element, text);
}

// --- buttons

let closed;

/** What the last notice tells of, if it may be over later. */
let told = "";

function button(text, deed, className = "") {
  const element = make("button", className, text);
  element.type = "button";
  element.dataset.do = deed;
  return element;
}

document.addEventListener("click", async (event) => {
  const pressed = event.target.closest("button[data-do]");
  if (!pressed || pressed.getAttribute("aria-busy") === "true") return;
  if (pressed.getAttribute("aria-disabled") === "true") {
    notice(pressed.title, true);
    return;
  }
  const deed = pressed.dataset.do;
  pressed.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/do/${deed}`, { method: "POST", headers: { "X-Demo-Token": token } });
    const text = await answer.text();
    notice(answer.headers.get("content-type") === "application/json" ? JSON.parse(text).said : text, !answer.ok);
    if (answer.ok) told = deed;
  } catch {
    notice("The demo does not answer.", true);
  } finally {
    pressed.removeAttribute("aria-busy");
  }
});

function notice(text, isBad = false) {
  told = "";
  classes(byId("notice"), isBad ? "notice bad" : "notice");
  say(byId("notice"), text.charAt(0).toUpperCase() + text.slice(1));
}

/** Switches a button off for as long as there is a reason. */
function off(element, why) {
  element.dataset.off = why || "";
}

/** Buttons work, or it is said why they do not. One that is off keeps the focus, and says why when it is pressed. */
function open(why) {
  for (const element of document.querySelectorAll("button[data-do]")) {
    const reason = why ?? element.dataset.off ?? "";
    set(element, { "aria-disabled": reason !== "", title: reason });
  }
  if (why !== closed) {
    closed = why;
    notice(why ?? "Your turn: break something, and watch it being put right.");
  }
}

/** Where the focus is, and what is beside it: what is gone has no neighbours any more. */
function place() {
  const at = document.activeElement;
  const [item, section] = [at?.closest("li"), at?.closest("section")];
  return { at, section, items: [item, item?.nextElementSibling, item?.previousElementSibling] };
}

/** Keeps the focus where it was; if that is gone, goes to the next button that is there, else to the title of the column. */
function stay({ at, section, items }) {
  const isThere = (element) => element.isConnected && element.offsetParent !== null;
  if (!section || isThere(at)) return;
  // Never to one that takes something away: whoever presses it again should not do harm.
  const buttons = [...items, section].flatMap((element) => [...(element?.querySelectorAll("button:not(.risky)") ?? [])]);
  (buttons.find(isThere) ?? section.querySelector("h2")).focus();
}

// --- the cluster

function drawNode(element, node) {
  const { head, facts, addresses, id, taints } = element.parts;
  say(head.firstChild, node.name);
  if (node.is_uninitialized) state(head.lastChild, "busy", "uninitialized");
  else if (node.is_shut_down) state(head.lastChild, "bad", "powered off, tainted");
  else if (node.ready === "True") state(head.lastChild, "good", "ready");
  else state(head.lastChild, "bad", "not ready");
  say(facts, node.place.concat(node.pod_network ?? []).join(", ") || "waits for its place in the cloud");
  say(addresses, node.addresses.join(", "));
  say(id, node.provider_id);
  id.title = node.provider_id;
  say(taints, node.taints.length ? `taint ${node.taints.map((taint) => taint.replace(/^.*\//, "")).join(", ")}` : "");
  taints.title = node.taints.join(", ");
}

function newNode() {
  const head = make("div", "row", make("span", "name"), make("span"));
  const parts = { head, facts: make("p", "facts"), addresses: make("p", "facts"), id: make("p", "facts mono"), taints: make("p", "facts") };
  const element = make("li", "", head, parts.facts, parts.addresses, parts.id, parts.taints);
  element.parts = parts;
  return element;
}

function newService(service) {
  const head = make("div", "row", make("span", "name"), make("span"));
  const parts = { head, address: make("p", "facts"), ports: make("p", "facts"), event: make("p", "facts"), trouble: make("p", "facts") };
  parts.actions = make("div", "actions");
  if (isOwn(service)) {
    parts.add = button("Add a port", "add-port");
    parts.remove = button("Remove a port", "remove-port");
    parts.delete = button("Delete the Service", "delete-service", "risky");
    parts.actions.append(parts.add, parts.remove, parts.delete);
  }
  const element = make("li", "", head, parts.address, parts.ports, parts.event, parts.trouble, parts.actions);
  element.parts = parts;
  return element;
}

const isOwn = (service) => service.namespace === "default" && service.name === "web";

function drawService(element, service, hands) {
  const { head, address, ports, event, trouble, add, remove } = element.parts;
  say(head.firstChild, isOwn(service) ? service.name : `${service.namespace}/${service.name}`);
  if (service.is_being_deleted) state(head.lastChild, "busy", "being deleted");
  else if (service.type !== "LoadBalancer") state(head.lastChild, "", service.type);
  else if (service.trouble) state(head.lastChild, "bad", "in trouble");
  else if (service.addresses.length) state(head.lastChild, "good", "has its address");
  else state(head.lastChild, "busy", "waits for its address");
  const entry = service.entry && `http://${service.entry}/`;
  if (address.dataset.entry !== `${service.addresses} ${entry}`) {
    address.dataset.entry = `${service.addresses} ${entry}`;
    address.replaceChildren(service.addresses.join(" and "));
    if (service.addresses.length && entry) {
      const link = make("a", "", entry);
      Object.assign(link, { href: entry, target: "_blank", rel: "noreferrer" });
      address.append(", visit ", link);
    }
  }
  say(ports, `ports ${service.ports.map((port) => `${port.port} at node port ${port.node_port}`).join(", ")}`);
  const times = service.event?.count > 1 ? ` (${service.event.count} times)` : "";
  say(event, service.event ? `${service.event.reason}: ${service.event.message}${times}` : "");
  say(trouble, service.trouble ?? "");
  if (!add) return;
  say(add, hands.next_port ? `Add port ${hands.next_port}` : "Add a port");
  const goes = service.is_being_deleted && "The Service is being deleted.";
  off(add, goes || (hands.next_port === null && "The Service has enough ports."));
  off(remove, goes);
  say(remove, hands.last_port ? `Remove port ${hands.last_port}` : "Remove a port");
  remove.hidden = hands.last_port === null;
  off(element.parts.delete, goes);
}

// --- traffic

const ROW = 46, BOX = 38;

function drawFlows(flows, servers) {
  const drawing = byId("flows");
  const rows = Math.max(flows.length, servers.length, 1);
  const height = rows * ROW + 4;
  // Drawn for the width that there is, so that the text has the size of all text.
  const width = Math.round(Math.max(280, drawing.clientWidth || 460));
  const [from, to] = [Math.round(Math.min(176, width * 0.44)), width - Math.round(Math.min(164, width * 0.34))];
  const middle = (from + to) / 2;
  set(drawing, { viewBox: `0 0 ${width} ${height}` });
  const place = (index, count) => (height - count * ROW) / 2 + index * ROW + ROW / 2;
  const lines = [];
  flows.forEach((flow, left) => servers.forEach((server, right) => {
    const rate = flow.answered_by[server.name] ?? 0;
    const [y1, y2] = [place(left, flows.length), place(right, servers.length)];
    lines.push({ key: `${flow.address} ${flow.port} ${server.name}`, rate, d: `M${from} ${y1}C${middle} ${y1} ${middle} ${y2} ${to} ${y2}` });
  }));
  drawing.layers ??= ["lines", "left", "right"].map((name) => drawing.appendChild(svg("g", { "data-layer": name })));
  const [layer, left, right] = drawing.layers;
  list(layer, lines, (it) => it.key, () => {
    const group = svg("g");
    group.append(svg("path"), svg("path", { class: "dots" }));
    return group;
  }, (group, line) => {
    set(group, { visibility: line.rate ? "visible" : "hidden" });
    set(group.firstChild, { d: line.d, "stroke-width": 1.5 + Math.min(line.rate, 12) });
    set(group.lastChild, { d: line.d });
  });
  const box = () => {
    const group = svg("g");
    group.append(svg("rect", { height: BOX, rx: 8 }), svg("text"), svg("text", { class: "small" }));
    return group;
  };
  const fill = (group, x, end, y, name, text, className) => {
    classes(group, className);
    const [rect, first, second] = group.children;
    set(rect, { x, y: y - BOX / 2, width: end - x });
    set(first, { x: x + 10, y: y - 3 });
    set(second, { x: x + 10, y: y + 13 });
    say(first, name);
    say(second, text);
  };
  list(left, flows, (it) => `${it.address} ${it.port}`, box, (group, flow) => {
    const y = place(flows.indexOf(flow), flows.length);
    const text = flow.failing ? `${flow.rate}/s, ${flow.failing}/s failed` : `${flow.rate}/s answered`;
    fill(group, 1, from, y, `${flow.address}:${flow.port}`, text, flow.failing ? "failing" : "");
  });
  list(right, servers, (it) => it.name, box, (group, server) => {
    const rate = flows.reduce((sum, flow) => sum + (flow.answered_by[server.name] ?? 0), 0);
    fill(group, to, width - 1, place(servers.indexOf(server), servers.length), server.name, server.is_on ? `${rate}/s` : "powered off", rate ? "" : "off");
  });
}

function drawTraffic(flows, servers) {
  const sum = (of) => flows.reduce((total, flow) => total + of(flow), 0);
  const [rate, failing, failed] = [sum((it) => it.rate), sum((it) => it.failing), sum((it) => it.failed)];
  figures(byId("traffic-text"), flows.length
    ? [[rate, "visits a second answered"], [failing, "failed", failing > 0], [failed, "failed since the start", false]]
    : [["", "Visitors come when a Service has its address."]]);
  drawFlows(flows, servers);
  const seconds = Math.max(0, ...flows.map((flow) => flow.history.length));
  const history = Array.from({ length: seconds }, (_, index) => flows.reduce(([good, bad], flow) => {
    const [more, worse] = flow.history[flow.history.length - seconds + index] ?? [0, 0];
    return [good + more, bad + worse];
  }, [0, 0]));
  drawBars(byId("visits"), history, ["answered", "failed"], 10);
}

function figures(element, items) {
  list(element, items, (it) => it[1], () => make("span", "", make("b"), " ", document.createTextNode("")), (span, [figure, words, isBad]) => {
    classes(span.firstChild, isBad ? "bad" : "");
    say(span.firstChild, String(figure));
    if (span.lastChild.data !== words) span.lastChild.data = words;
  });
}

/** One stack of bars for each of the last sixty seconds. */
function drawBars(drawing, history, names, least) {
  set(drawing, { viewBox: "0 0 240 44", preserveAspectRatio: "none" });
  while (drawing.children.length < 60 * names.length) {
    drawing.append(svg("rect", { class: names[drawing.children.length % names.length], width: 3, height: 0, y: 44 }));
  }
  const highest = Math.max(least, ...history.map((counts) => counts.reduce((sum, count) => sum + count, 0)));
  for (let second = 0; second < 60; second += 1) {
    const counts = history[history.length - 60 + second] ?? names.map(() => 0);
    let top = 44;
    counts.forEach((count, index) => {
      const height = (count / highest) * 42;
      top -= height;
      set(drawing.children[second * names.length + index], { x: second * 4, y: top.toFixed(1), height: height.toFixed(1) });
    });
  }
}

// --- the plan

const SIGNS = { planned: "M12 5a7 7 0 1 0 .1 0", running: "M12 4a8 8 0 1 0 8 8", done: "M5 13l5 5L20 6", failed: "M6 6l12 12M18 6L6 18", spared: "M6 12h12" };
const WORDS = { planned: "planned", running: "under way", done: "done", failed: "failed, will be tried again", spared: "not needed any more" };

function drawPlan(plan) {
  say(byId("plan-why"), plan ? `${plan.object}: ${plan.why}` : "");
  const waves = plan ? plan.waves.map((steps, index) => ({ title: `Wave ${index + 1}`, steps })) : [];
  if (plan?.others.length) waves.push({ title: waves.length ? "And" : "As it happens", steps: plan.others });
  list(byId("waves"), waves, (wave) => `${plan.number} ${wave.title}`, (wave) => make("li", "wave", make("h3", "", wave.title), make("ul")), (element, wave) => {
    const of = (progress) => wave.steps.some((step) => step.progress === progress);
    const isDone = wave.steps.every((step) => step.progress === "done" || step.progress === "spared");
    classes(element, `wave ${of("failed") ? "failed" : of("running") ? "running" : isDone ? "done" : ""}`);
    const steps = wave.steps.map((step, index) => ({ ...step, index }));
    list(element.lastChild, steps, (step) => step.index, newStep, drawStep);
  });
  let end = plan?.outcome ?? "No plan yet. It is shown before the change is made.";
  if (plan?.is_settled) end = [end, "settled"].filter(Boolean).join("; ");
  say(byId("plan-outcome"), end);
}

function newStep() {
  const sign = svg("svg", { viewBox: "0 0 24 24", role: "img" });
  sign.append(svg("path"));
  return make("li", "step", sign, make("code"), make("span", "impact"));
}

function drawStep(element, step) {
  const [sign, label, impact] = element.children;
  classes(element, `step ${step.progress}`);
  set(sign, { "aria-label": WORDS[step.progress] });
  set(sign.firstChild, { d: SIGNS[step.progress] });
  say(label, short(step.label));
  if (label.title !== step.label) label.title = step.label;
  classes(impact, `impact ${step.impact}`);
  say(impact, step.impact === "none" ? "" : `impact ${step.impact}`);
}

// --- the cloud

function newServer(server) {
  const head = make("div", "row", make("span", "name"), make("span"));
  const parts = { head, facts: make("p", "facts"), power: button("Stop", `stop-server/${server.name}`), gone: button("Delete", `delete-server/${server.name}`, "risky") };
  const element = make("li", "", head, make("div", "row", parts.facts, make("div", "actions", parts.power, parts.gone)));
  element.parts = parts;
  return element;
}

function drawServer(element, server, isLast) {
  const { head, facts, power, gone } = element.parts;
  say(head.firstChild, server.name);
  state(head.lastChild, server.is_on ? "good" : "bad", server.is_on ? "running" : "powered off");
  say(facts, [server.kind, server.zone, server.address].filter(Boolean).join(", "));
  const word = server.is_on ? "Stop" : "Start";
  say(power, word);
  set(power, { "aria-label": `${word} ${server.name}` });
  set(gone, { "aria-label": `Delete ${server.name}` });
  off(gone, isLast && "The last server stays: without one there is nobody to answer.");
  power.dataset.do = `${server.is_on ? "stop" : "start"}-server/${server.name}`;
}

function drawThings(parent, things, depth) {
  const items = things.map((thing, index) => ({ thing, key: `${thing.noun} ${thing.name} ${index}` }));
  list(parent, items, (it) => it.key, () => {
    const head = make("div", "row", make("span", "name"), make("span"));
    const element = make("li", "", head, make("p", "facts"), make("ul", "parts"));
    element.parts = { head, facts: element.children[1], parts: element.children[2] };
    return element;
  }, (element, { thing }) => {
    const { head, facts, parts } = element.parts;
    // A member is its name; its dot says how it is, and so does its title.
    const isLeaf = depth === 2;
    say(head.firstChild, isLeaf ? "" : short(thing.name));
    head.firstChild.hidden = isLeaf;
    state(head.lastChild, thing.tone, isLeaf ? `${thing.name} ${thing.state}` : thing.state);
    head.lastChild.hidden = !isLeaf && !thing.state;
    say(facts, isLeaf ? "" : [thing.noun, ...thing.facts].map(short).join(", "));
    facts.hidden = isLeaf;
    parts.hidden = thing.parts.length === 0;
    drawThings(parts, thing.parts, depth + 1);
  });
}

function drawCloud(cloud) {
  say(byId("cloud-name"), `on a simulated ${cloud.title}`);
  state(byId("api"), cloud.is_broken ? "bad" : "good", cloud.is_broken ? "every call fails" : "in order");
  say(byId("outage"), cloud.is_broken ? "Mend the API" : "Break the API");
  classes(byId("outage"), cloud.is_broken ? "" : "risky");
  byId("outage").dataset.do = cloud.is_broken ? "mend-api" : "break-api";
  const last = cloud.calls.history.at(-1) ?? { reads: 0, writes: 0 };
  figures(byId("calls-text"), [[last.reads + last.writes, "calls a second"], [cloud.calls.total, "in all"], [cloud.calls.writes, "changes"]]);
  drawBars(byId("calls"), cloud.calls.history.map((it) => [Math.max(0, it.reads - it.failed), it.writes, it.failed]), ["reads", "writes", "failed"], 4);
  list(byId("servers"), cloud.servers, (it) => it.name, newServer, (element, server) => drawServer(element, server, cloud.servers.length === 1));
  say(byId("things-title"), cloud.bill ? `Addresses (${cloud.bill})` : "Load balancers and addresses");
  const things = cloud.things.length ? cloud.things : [{ noun: "None yet", name: "", state: "", tone: "plain", facts: [], parts: [] }];
  drawThings(byId("things"), things, 0);
  const routes = Object.entries(cloud.routes);
  byId("routes-box").hidden = routes.length === 0;
  list(byId("routes"), routes, ([network]) => network, () => make("li", "", make("span"), make("span", "quiet")), (element, [network, server]) => {
    say(element.firstChild, network);
    say(element.lastChild, `to ${server}`);
  });
}

// --- what happened

let heard = -1;

function drawLines(lines) {
  list(byId("lines"), lines.slice().reverse(), (line) => line.number, (line) => {
    const time = make("time", "", `${(line.tenths / 10).toFixed(1)} s`);
    const kind = line.kind === "chapter" ? "" : line.kind;
    const warning = line.kind === "event" && line.text.startsWith("Warning") ? " warning" : "";
    return make("li", line.kind + warning, time, make("span", "kind", kind), make("span", "text", short(line.text)));
  }, () => {});
  // Read out: what Kubernetes says, and what was checked.
  const news = lines.filter((line) => line.number > heard && (line.kind === "event" || line.kind === "ok"));
  heard = lines.at(-1)?.number ?? heard;
  if (news.length) say(byId("said"), news.map((line) => line.text).join(". "));
}

// --- the picture

let latest = null;

/** The manager that was killed is started again, and the notice goes along. */
function followManager(manager) {
  const before = latest?.manager.role ?? manager.role;
  if (told !== "kill-manager" || manager.role === before || manager.role === "killed") return;
  notice(manager.role === "leads" ? "The manager leads again." : `The manager ${manager.text}.`);
  if (manager.role !== "leads") told = "kill-manager";
}

function draw(picture) {
  followManager(picture.manager);
  latest = picture;
  const kept = place();
  const { cluster, cloud, traffic, manager, plan, lines, hands } = picture;
  const tones = { leads: "good", waits: "busy", killed: "bad", ended: "bad" };
  state(byId("manager"), tones[manager.role], `The manager ${manager.text}`);
  off(byId("kill"), (manager.role === "killed" || manager.role === "ended") && "The manager does not run now.");
  list(byId("nodes"), cluster.nodes, (it) => it.name, newNode, drawNode);
  list(byId("services"), cluster.services, (it) => `${it.namespace}/${it.name}`, newService, (element, service) => drawService(element, service, hands));
  byId("create").hidden = !hands.can_create || hands.closed !== null;
  drawTraffic(traffic, cloud.servers);
  drawPlan(plan);
  drawCloud(cloud);
  drawLines(lines);
  open(hands.closed);
  stay(kept);
  document.body.dataset.drawn = "true";
}

window.addEventListener("resize", () => latest && draw(latest));

const events = new EventSource("/events");
events.onmessage = (event) => {
  const picture = JSON.parse(event.data);
  if (picture.cluster) draw(picture);
};
events.onerror = () => open("The demo has ended or does not answer. This is the last that was seen of it.");
