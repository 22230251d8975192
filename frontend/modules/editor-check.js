// Asks the server what a text would do, a moment after the last key, and only for the newest text.

const PAUSE_MS = 250;
const FRESH_MS = 10_000; // how long what may be chosen is not asked for again

// Returns check(text); told(report, text) hears the answer, failed(words) that there is none.
export function checker(url, token, { asking, told, failed }) {
  let timer = 0;
  let running = null;
  let asked = Date.now(); // when it was told last what may be chosen

  async function ask(text) {
    running?.abort();
    const own = new AbortController();
    running = own;
    asking();
    try {
      const body = new FormData();
      body.set("text", text);
      if (Date.now() - asked > FRESH_MS) body.set("choices", "1");
      const answer = await fetch(url, {
        method: "POST",
        body,
        headers: { "X-CSRFToken": token, Accept: "application/json" },
        signal: own.signal,
      });
      if (answer.redirected || answer.status === 403) {
        failed("You are not signed in any more. Sign in in another tab; your text stays here.");
      } else if (answer.ok) {
        const report = await answer.json();
        if (report.choices) asked = Date.now();
        told(report, text);
      } else {
        failed(`The server could not check the text (${answer.status}). It stays here.`);
      }
    } catch (error) {
      if (error.name !== "AbortError")
        failed("The server does not answer. Your text stays here; it is checked when you type on.");
    }
  }

  function check(text, pause = PAUSE_MS) {
    clearTimeout(timer);
    timer = setTimeout(() => ask(text), pause);
  }
  check.stop = () => {
    clearTimeout(timer);
    running?.abort();
  };
  return check;
}
