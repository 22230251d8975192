// The lifecycle policies of a job or a task: a row for each, with the events or the exit code, the action and the timeout.
import { fill, place, why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import * as yaml from "./editor-write.js";

const EXIT_CODE = "exitCode"; // what the choice of an event says for a policy that answers an exit code
const FIRST = { event: "PodFailed", action: "RestartJob" };

// Returns show(policies). holder has the rows, the button and the errors; kind is job or task: who hears which event.
export function policyList(holder, template, page, kind) {
  const part = (name) => holder.querySelector(`[data-part="${name}"]`);
  const act = (name) => holder.querySelector(`[data-do="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  const shown = [];
  let policies = null;

  act("add-policy").addEventListener("click", () => {
    const { path, rows } = policies;
    edit((text) => yaml.addPolicy(text, path, next(rows)));
    shown.at(-1)?.focus();
  });

  // The policy that a new row begins with: an event, or a code, that no other row answers.
  function next(rows) {
    const [event] = unused(rows);
    if (event && !answers(rows, "*")) return rows.length === 0 ? FIRST : { event, action: FIRST.action };
    const codes = new Set(rows.map((row) => row.exitCode.text));
    let exitCode = 1;
    while (codes.has(String(exitCode))) exitCode += 1;
    return { exitCode, action: FIRST.action };
  }

  const answers = (rows, event) => rows.some((row) => row.events.some((each) => each.text === event));

  function unused(rows) {
    const choices = [...template(`event-${kind}`).querySelectorAll("option")].map((option) => option.value);
    return choices.filter((name) => name !== EXIT_CODE && name !== "*" && !answers(rows, name));
  }

  function show(found) {
    policies = found;
    const { rows, state, path } = policies;
    while (shown.length > rows.length) shown.pop().element.remove();
    rows.forEach((row, index) => {
      if (!shown[index]) {
        shown[index] = policyRow(template, edit, kind, () => unused(policies.rows)[0]);
        part("policy-rows").append(shown[index].element);
      }
      shown[index].show(row, index);
    });
    why(part("policies-count"), rows.length > 0 ? String(rows.length) : "");
    act("add-policy").disabled = state === "foreign";
    part("policies-error").dataset.path = pathText(path);
    why(part("policies-why"), state === "foreign" ? policies.why : "");
  }

  return { show };
}

function policyRow(template, edit, kind, unused) {
  const element = template("policy");
  const part = (name) => element.querySelector(`[data-part="${name}"]`);
  const act = (name) => element.querySelector(`[data-do="${name}"]`);
  let policy = null;

  for (const name of ["exitCode", "action", "timeout"]) {
    part(name).addEventListener("input", () => edit((text) => yaml.write(text, policy[name].path, part(name).value)));
  }
  act("add-event").addEventListener("click", () => {
    edit((text) => yaml.addEvent(text, policy.path, unused()));
    part("events").lastElementChild?.querySelector("select").focus();
  });
  act("remove-policy").addEventListener("click", () => {
    const before = element.previousElementSibling;
    const list = element.closest("[data-part=policies]");
    edit((text) => yaml.removeItem(text, policy.path));
    (before?.querySelector("select") ?? list.querySelector("[data-do=add-policy]")).focus();
  });

  const isCode = () => policy.exitCode.state === "set";

  function event(index) {
    const made = template(`event-${kind}`);
    const select = made.querySelector("select");
    select.addEventListener("input", () => choose(index, select.value));
    made.querySelector("button").addEventListener("click", () => {
      const { path } = policy.events[index];
      edit((text) => (path.at(-1) === "event" ? yaml.write(text, path, "") : yaml.removeItem(text, path)));
      part("events").querySelector("select").focus();
    });
    return made;
  }

  function choose(index, value) {
    if (value === EXIT_CODE) edit((text) => yaml.answerCode(text, policy.path, 1));
    else if (isCode() && policy.events[index].state === "unset")
      edit((text) => yaml.answerEvent(text, policy.path, value));
    else edit((text) => yaml.write(text, policy.events[index].path, value));
  }

  function showEvents() {
    const holder = part("events");
    const { events } = policy;
    while (holder.children.length > events.length) holder.lastElementChild.remove();
    while (holder.children.length < events.length) holder.append(event(holder.children.length));
    events.forEach((each, index) => {
      const [select, button] = holder.children[index].querySelectorAll("select, button");
      place(select, each.path);
      fill(select, isCode() && each.state === "unset" ? { ...each, text: EXIT_CODE } : each);
      if (index > 0) select.setAttribute("aria-label", `or when, ${index + 1}`);
      button.hidden = events.length === 1;
    });
    act("add-event").hidden = isCode() || policy.events[0].text === "*" || !unused() || Boolean(policy.why);
  }

  function show(next, index) {
    policy = next;
    element.setAttribute("aria-label", `Policy ${index + 1}`);
    showEvents();
    for (const name of ["exitCode", "action", "timeout"]) {
      place(part(name), policy[name].path);
      fill(part(name), policy[name]);
    }
    part("exitCode").closest("label").hidden = !isCode();
    part("policy-error").dataset.path = pathText(policy.path);
    why(part("policy-why"), policy.why);
  }

  return { element, show, focus: () => part("events").querySelector("select").focus() };
}
