// The fields of a form as pairs of name and value, and back.
const NOT_KEPT = new Set(["csrfmiddlewaretoken", "draft", "reviewed"]);

export function read(form) {
  return [...new FormData(form)].filter(([name, value]) => !NOT_KEPT.has(name) && typeof value === "string");
}

// Fields that the form does not have (yet) are left out.
export function fill(form, fields) {
  const left = Map.groupBy(fields, ([name]) => name);
  for (const element of form.elements) {
    if (!element.name || NOT_KEPT.has(element.name) || element.type === "submit") continue;
    const values = (left.get(element.name) ?? []).map(([, value]) => value);
    if (["checkbox", "radio"].includes(element.type)) element.checked = values.includes(element.value);
    else if (element.type === "select-multiple")
      for (const option of element.options) option.selected = values.includes(option.value);
    else if (values.length) {
      element.value = values[0];
      left.get(element.name).shift();
    }
  }
}

// What a draft is called where several are offered: the name in its YAML, or its field `name`.
export function title(fields) {
  const of = (name) => fields.find(([each]) => each === name)?.[1] ?? "";
  return /^\s+(?:name|generateName):\s*["']?([^\s"'#]+)/m.exec(of("text"))?.[1] ?? of("name");
}
