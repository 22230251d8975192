// What the server sends of logs, given line by line and each only once, also after a broken connection.

import { stream } from "./live.js";

// Returns open(line) and close. place() is what the subscription asks for; line is where it begins: a line's key,
// "start", or nothing for the end. told hears begin, line, lost, news, end and denied.
export function feed(place, told) {
  const reached = new Map(); // log's key -> offset of its last line
  let logs = {}; // the server's numbers -> { key, pod, uid, container, attempt, isOne, rank }
  let [from, since, stop] = ["", "", () => {}];

  function params() {
    return { ...place(), ...(since ? { since } : { line: from }) };
  }

  function receive(message) {
    if (message.op === "denied") return told.denied(message.message);
    const isAgain = since !== "";
    if (message.first) {
      logs = {};
      told.begin(message, isAgain);
    }
    for (const [number, each] of Object.entries(message.logs ?? {})) logs[number] = named(each);
    for (const line of message.lines ?? []) take(line);
    if (!message.first && message.lost) told.lost(message.lost);
    told.news(message);
    if (message.end) close();
    if (message.end) told.end();
    return undefined;
  }

  function take([number, time, kind, text, isWhole, offset]) {
    const log = logs[number];
    if (reached.has(log.key) && offset <= reached.get(log.key)) return;
    reached.set(log.key, offset);
    if (time > since) since = time;
    told.line(log, time, kind, text, isWhole, offset);
  }

  function open(line) {
    stop();
    reached.clear();
    [from, since] = [line, ""];
    stop = stream("logs", params, receive);
  }

  function close() {
    stop();
    stop = () => {};
  }

  return { open, close };
}

function named([pod, uid, container, attempt, isOne, rank]) {
  return { key: `${uid}.${container}.${attempt}`, pod, uid, container, attempt, isOne, rank };
}
