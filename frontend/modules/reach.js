// Asks whether the server answers at all: its smallest file, past every cache.
const LONGEST_MS = 4000;

export async function reach() {
  const { href } = document.querySelector("link[rel=icon]");
  try {
    await fetch(href, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS) });
    return true;
  } catch {
    return false;
  }
}
