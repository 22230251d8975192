// The volumes that all pods of a job see: where, and on a claim that is made, one that exists, or none.

import { why } from "./editor-field.js";
import { addJobVolume, changeJobVolume } from "./editor-parts.js";
import { rowList } from "./editor-rows.js";

const FIELDS = { volumeClaim: ["storage", "accessMode", "storageClassName"], volumeClaimName: ["volumeClaimName"] };

// Returns show(volumes), these as editor-pod.js reads them.
export function jobVolumes(holder, template, page) {
  const rows = rowList(holder, () => template("job-volume"), page, {
    add: addJobVolume,
    change: { kind: changeJobVolume },
    stays: ["mountPath", "volumeClaimName"],
    draw,
  });

  function show(volumes) {
    rows.show(volumes);
    why(holder.querySelector("[data-part=volumes-count]"), volumes.rows.length > 0 ? String(volumes.rows.length) : "");
  }

  return { show };
}

function draw(element, { fields }) {
  for (const [kind, names] of Object.entries(FIELDS)) {
    for (const name of names) {
      element.querySelector(`[data-field=${name}]`).closest(".field").hidden = fields.kind.text !== kind;
    }
  }
}
