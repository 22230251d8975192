// Loads the module of a behaviour, once more where the server or the way to it was away for a moment.
import { toast } from "./toast.js";

const PAUSES_MS = [0, 0, 500, 2000, 8000]; // before each attempt

export async function load(name) {
  let failure;
  for (const pause of PAUSES_MS) {
    if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    try {
      return await import(`./${name}.js`);
    } catch (error) {
      failure = error;
    }
  }
  console.warn(failure);
  toast("Part of this page could not be loaded, so some of it does nothing. Load the page again.", "error");
  return null;
}
