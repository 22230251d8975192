// Whether somebody has typed or chosen something in a control: modules listen only a moment after the page has loaded.
export function isTouched(control) {
  if (control.tagName !== "SELECT") return control.value !== control.defaultValue;
  const delivered = [...control.options].find((each) => each.defaultSelected) ?? control.options[0];
  return control.value !== (delivered?.value ?? "");
}
