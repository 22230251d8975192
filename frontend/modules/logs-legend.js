// The pods whose logs are shown together: each has a colour, and a click on its name hides and shows its lines.

const HUES = ["blue", "orange", "green", "pink", "teal", "violet", "amber", "plum", "brown", "yellow"];

// Returns what names pods and says whose lines are hidden; changed(uid, isHidden) is told of each choice, done() after all.
export function legend(list, { changed, done }) {
  const known = new Map(); // uid -> { hue, label, button }

  function of(uid, label, rank) {
    if (known.has(uid)) return known.get(uid);
    const isTaken = [...known.values()].some((each) => each.label === label);
    const made = { rank, hue: HUES[rank % HUES.length], label: isTaken ? `${label} (${uid.slice(0, 4)})` : label };
    made.button = button(uid, made);
    known.set(uid, made);
    return made;
  }

  function button(uid, { rank, hue, label }) {
    const item = document.createElement("li");
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "log-chip", textContent: label });
    made.dataset.hue = hue;
    made.setAttribute("aria-pressed", "true");
    made.addEventListener("click", () => {
      set(uid, made.getAttribute("aria-pressed") === "true");
      done();
    });
    item.append(made);
    const next = [...known.values()].filter((each) => each.rank > rank).sort((a, b) => a.rank - b.rank)[0];
    list.insertBefore(item, next?.button.parentElement ?? null);
    return made;
  }

  function set(uid, isHidden) {
    known.get(uid).button.setAttribute("aria-pressed", String(!isHidden));
    changed(uid, isHidden);
  }

  function setAll(isHidden) {
    for (const uid of known.keys()) set(uid, isHidden);
    done();
  }

  return { of, setAll, size: () => known.size };
}
