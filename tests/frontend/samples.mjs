// Generated jobs as objects and as texts, and what is asked of a text after a change.

import assert from "node:assert/strict";
import { parse as load } from "yaml";
import { job, random, write } from "./specs.mjs";

// The same jobs in every run; a campaign tries more.
export const ROUNDS = Number(process.env.ROUNDS ?? 25);

const samples = [];

function sample(index) {
  if (samples[index]) return samples[index];
  const seed = index + 1;
  const r = random(seed);
  const object = job(r);
  const text = write(r, object);
  assert.deepEqual(load(text), object, `seed ${seed}: the generator itself`);
  samples[index] = { seed, object, text };
  return samples[index];
}

// Calls check with each sample, at most so many of them.
export function each(check, rounds = ROUNDS) {
  for (let index = 0; index < Math.min(rounds, ROUNDS); index += 1) {
    const { seed, object, text } = sample(index);
    check({ r: random(-seed), object, text, seed });
  }
}

export function comments(text) {
  const found = [];
  for (const match of text.matchAll(/^ *#.*$| # ?(?:beside).*$/gm)) found.push(match[0].trim());
  return found.sort();
}

export function at(object, path) {
  return path.reduce((value, step) => value?.[step], object);
}

// Returns a copy of object with value at path; undefined takes away what is there.
export function put(object, path, value) {
  const copy = structuredClone(object);
  let holder = copy;
  for (const step of path.slice(0, -1)) holder = holder[step] ??= {};
  if (value === undefined) delete holder[path.at(-1)];
  else holder[path.at(-1)] = value;
  return copy;
}

export const texts = (list, field) => list.rows.map((row) => row.fields[field].text);
