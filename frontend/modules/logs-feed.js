// What the server sends of logs, given line by line and each only once, also after a broken connection.

import { stream } from "./live.js";

// Returns open(line) and close. place() is what the subscription asks for; line is where it begins: a line's key,
// "start", or nothing for the end. told hears begin, line, lost, news, end and denied,
// and says underWay(): the keys of the lines that have not ended, with commas between.
export function feed(place, told) {
  const reached = new Map(); // log's key and stream -> offset of its last piece
  let logs = {}; // the server's numbers -> { key, pod, uid, container, attempt, isOne, rank }
  let [from, since, stop] = ["", "", () => {}];

  function params() {
    return { ...place(), ...(since ? { since, open: told.underWay() } : { line: from }) };
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
    if (message.until > since) since = message.until;
    if (!message.first && message.lost) told.lost(message.lost);
    told.news(message);
    if (message.end) close();
    if (message.end) told.end();
    return undefined;
  }

  function take([number, time, kind, shown, isWhole, offset, last, keep, states]) {
    const log = logs[number];
    const stream = `${log.key} ${kind}`;
    if (reached.has(stream) && last <= reached.get(stream)) return;
    reached.set(stream, last);
    const runs = typeof shown === "string" ? [[shown]] : shown; // [text, classes, link]
    told.line(log, { time, stream, runs, isWhole, offset, keep, states });
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
