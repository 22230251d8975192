// The job editor: a form and its YAML, each changing the other, with every problem shown while typing.
import { checker } from "./editor-check.js";
import { create } from "./editor-code.js";
import { form as makeForm } from "./editor-form.js";
import { read } from "./editor-model.js";

export function mount(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const area = root.querySelector("textarea[name=text]");
  const begun = area.value;
  let submitting = false;
  let pressed = false; // the pointer, somewhere on the page
  let unshown = null; // a verdict that came meanwhile

  const check = checker(root.dataset.validate, root.elements.csrfmiddlewaretoken.value, {
    asking: () => {
      part("says").dataset.checking = "";
    },
    told: (report, text) => {
      unshown = () => told(report, text);
      if (!pressed) show();
    },
    failed: (words) => say({ state: "unknown", verdict: words }),
  });
  part("code").hidden = false;
  const code = create(part("code"), area.value, {
    nonce: root.dataset.nonce,
    label: "Job as YAML",
    hint: "editor-keys",
    changed: (text) => {
      area.value = text;
      form.show(read(text));
      check(text);
    },
  });
  const form = makeForm(part("form"), root, {
    text: () => code.text(),
    write: (text) => {
      code.replace(text);
      area.value = text;
      form.show(read(text));
      check(text);
    },
  });
  area.hidden = true;
  part("form").hidden = false;
  form.offer(JSON.parse(document.getElementById("editor-choices").textContent));
  form.show(read(area.value));
  check(area.value, 0);

  // What it is about may have moved, appeared or gone: under a pressed pointer, the click would miss what it was meant for.
  function show() {
    unshown?.();
    unshown = null;
  }

  function press() {
    pressed = true;
  }

  function release() {
    pressed = false;
    setTimeout(() => pressed || show()); // after the click
  }

  function told(report, text) {
    if (report.choices) form.offer(report.choices);
    if (text !== code.text()) return;
    form.blame(report.causes, report.warnings);
    form.hold(report.held);
    code.mark([
      ...report.causes.map((cause) => ({ ...cause, severity: "error" })),
      ...report.warnings.map((warning) => ({ ...warning, severity: "warning" })),
      ...report.notes.map((note) => ({ ...note, severity: "info" })),
    ]);
    say({ state: report.accepted ? "accepted" : "refused", ...report });
  }

  function say({ state, verdict, summary = "", causes = [], notes = [], warnings = [], text = "" }) {
    const says = part("says");
    delete says.dataset.checking;
    says.dataset.state = state;
    says.toggleAttribute("data-warned", warnings.length > 0);
    part("verdict").textContent = verdict;
    part("summary").textContent = summary;
    const lines = [
      ...causes.map((each) => finding(each, "error")),
      ...warnings.map((each) => finding(each, "warning")),
      ...notes.map((each) => finding(each, "note")),
    ];
    if (text) lines.push(mended(text));
    part("findings").replaceChildren(...lines);
  }

  function finding({ message, line = 0, field = "" }, kind) {
    const item = document.createElement("li");
    item.dataset.kind = kind;
    if (line > 0) {
      const link = document.createElement("button");
      Object.assign(link, { type: "button", className: "link", textContent: `Line ${line}` });
      link.addEventListener("click", () => code.show(line));
      item.append(link, " ");
    }
    item.append(message);
    if (field) {
      const path = document.createElement("code");
      path.textContent = field;
      item.append(" ", path);
    }
    return item;
  }

  function mended(text) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    Object.assign(button, {
      type: "button",
      className: "link",
      textContent: "Write it as it was understood",
    });
    button.addEventListener("click", () => {
      code.replace(text);
      area.value = text;
      form.show(read(text));
      check(text, 0);
      code.show(1);
    });
    item.append(button);
    return item;
  }

  function submit(event) {
    if (submitting) {
      event.preventDefault();
      return;
    }
    submitting = true;
    area.value = code.text();
    part("submit").setAttribute("aria-disabled", "true");
  }

  function leave(event) {
    if (!submitting && code.text() !== begun && !("draftKept" in root.dataset)) event.preventDefault();
  }

  // A page that the browser kept and shows again may be submitted again; its token makes that the same job.
  function back(event) {
    if (!event.persisted) return;
    submitting = false;
    part("submit").removeAttribute("aria-disabled");
  }

  root.addEventListener("submit", submit);
  globalThis.addEventListener("pointerdown", press);
  globalThis.addEventListener("pointerup", release);
  globalThis.addEventListener("pointercancel", release);
  globalThis.addEventListener("beforeunload", leave);
  globalThis.addEventListener("pageshow", back);
  return () => {
    check.stop();
    code.destroy();
    root.removeEventListener("submit", submit);
    globalThis.removeEventListener("pointerdown", press);
    globalThis.removeEventListener("pointerup", release);
    globalThis.removeEventListener("pointercancel", release);
    globalThis.removeEventListener("beforeunload", leave);
    globalThis.removeEventListener("pageshow", back);
  };
}
