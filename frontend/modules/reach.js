// Asks whether the server answers: its smallest file, past every cache. While the cluster is stopped something else answers, with 503.
const LONGEST_MS = 4000;

export async function reach() {
  const { href } = document.querySelector("link[rel=icon]");
  try {
    const asked = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS) };
    return (await fetch(href, asked)).ok;
  } catch {
    return false;
  }
}
