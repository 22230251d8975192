// A new sweep: CodeMirror in the place of the plain field for its YAML, and a word while its jobs are made.
import { create } from "./editor-code.js";

export function mount(form) {
  const area = form.querySelector("textarea[name=text]");
  const place = form.querySelector("[data-part=code]");
  let submitting = false;

  place.hidden = false;
  const code = create(place, area.value, {
    nonce: form.dataset.nonce,
    label: "Job as YAML, with placeholders",
    hint: "editor-keys",
    changed: (text) => {
      area.value = text;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
  area.hidden = true;

  function submit(event) {
    if (submitting) {
      event.preventDefault();
      return;
    }
    area.value = code.text();
    if (event.submitter?.value !== "submit") return;
    submitting = true;
    event.submitter.setAttribute("aria-disabled", "true");
    const wait = document.createElement("span");
    Object.assign(wait, { className: "soft small", textContent: "Every job is checked, then all are stored …" });
    wait.setAttribute("role", "status");
    event.submitter.before(wait);
  }

  // A page that the browser kept and shows again may be submitted again; its token makes that the same sweep.
  function shown() {
    submitting = false;
  }

  form.addEventListener("submit", submit);
  globalThis.addEventListener("pageshow", shown);
  return () => {
    form.removeEventListener("submit", submit);
    globalThis.removeEventListener("pageshow", shown);
    code.destroy();
  };
}
