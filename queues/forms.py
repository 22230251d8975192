"""The form of a queue, and the patch of exactly the fields that were changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from dashboard.parts.forms import Form
from kube.kinds.scheduling import DequeueStrategy, Queue
from kube.meta import Object

SHARES = {"capability": ("capability",), "deserved": ("deserved",), "guarantee": ("guarantee", "resource")}
PLAIN = {"weight": "weight", "priority": "priority", "order": "dequeueStrategy", "reclaimable": "reclaimable"}
# The form's field for an error of the API, by the path that the error names.
FIELDS = {
    "metadata.name": "name",
    "spec.weight": "weight",
    "spec.priority": "priority",
    "spec.dequeueStrategy": "order",
    "spec.parent": "parent",
    "spec.capability": "capability",
    "spec.deserved": "deserved",
    "spec.guarantee": "guarantee",
    "spec.reclaimable": "reclaimable",
}


class Resources(forms.CharField):
    """A resource list, one `name: quantity` a line; admission checks the quantities."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": 3, "class": "textarea mono", "placeholder": "one a line, such as cpu: 4"}
        )
        super().__init__(required=False, max_length=4000, widget=widget, **kwargs)

    def clean(self, value: Any) -> dict[str, str]:
        quantities: dict[str, str] = {}
        for number, line in enumerate(super().clean(value).splitlines(), 1):
            if not line.strip():
                continue
            name, colon, quantity = line.partition(":")
            if not colon or not name.strip() or not quantity.strip():
                raise forms.ValidationError(f"Line {number} is “{line[:40]}”; write it like cpu: 4.")
            if name.strip() in quantities:
                raise forms.ValidationError(f"{name.strip()[:40]} is there twice.")
            quantities[name.strip()] = quantity.strip()
        return quantities


class QueueForm(Form):
    """The fields of a queue that may be changed."""

    weight = forms.IntegerField(
        min_value=1,
        max_value=65535,
        initial=1,
        label="Weight",
        help_text="Its fair share beside other queues, of what Deserved does not name; 1 to 65535.",
    )
    priority = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        initial=0,
        required=False,
        label="Priority",
        help_text="Queues of a higher one are served first, whatever they use.",
    )
    order = forms.ChoiceField(
        choices=[(DequeueStrategy.TRAVERSE.value, "whoever fits"), (DequeueStrategy.FIFO.value, "first in, first out")],
        initial=DequeueStrategy.TRAVERSE.value,
        required=False,
        label="Order",
        help_text="When the first job cannot start: try the next, or let all wait for it.",
    )
    parent = forms.ChoiceField(
        required=False, label="Parent", help_text="What lies below a closed queue is closed too."
    )
    reclaimable = forms.BooleanField(
        required=False, initial=True, label="Others may take back what it uses beyond its share"
    )
    capability = Resources(label="Capability", help_text="The most it may take; empty means no limit.")
    deserved = Resources(
        label="Deserved", help_text="Its fair share, in place of one by its weight; it may borrow more."
    )
    guarantee = Resources(label="Guarantee", help_text="What is kept free for it; Deserved must be as much at least.")
    # The spec that the form was filled from; the status may change meanwhile.
    generation = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, parents: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["parent"]
        field.choices = [("", "root"), *((name, name) for name in parents)]  # type: ignore[attr-defined]

    def clean_priority(self) -> int:
        """Return the default for an empty field."""
        return self.cleaned_data["priority"] or 0

    def clean_order(self) -> str:
        """Return the present order if none was chosen."""
        return self.cleaned_data["order"] or self.initial.get("order") or DequeueStrategy.TRAVERSE.value

    def spec(self) -> Object:
        """Return the spec of a new queue."""
        values = self.cleaned_data
        spec: Object = {field: values[name] for name, field in PLAIN.items()}
        if values["parent"]:
            spec["parent"] = values["parent"]
        for field, path in SHARES.items():
            if values[field]:
                _put(spec, path, values[field])
        return spec

    def patch(self, queue: Queue) -> Object:
        """Return the merge patch from a queue to the form's values; fields that were not changed are not in it."""
        old, new = initial_of(queue), self.cleaned_data
        spec: Object = {}
        for name, field in PLAIN.items():
            if new[name] != old[name]:
                spec[field] = new[name]
        if new["parent"] != old["parent"]:
            spec["parent"] = new["parent"] or None
        for field, path in SHARES.items():
            before, after = resources_of(queue, field), new[field]
            change = {name: value for name, value in after.items() if before.get(name) != value}
            change |= dict.fromkeys(before.keys() - after.keys())  # None takes a resource away
            if change:
                _put(spec, path, change)
        return {"spec": spec} if spec else {}


class NewQueueForm(QueueForm):
    """A new queue."""

    name = forms.CharField(max_length=63, label="Name", help_text="Lower-case letters, digits and “-”.")
    field_order = ("name", "parent", "weight", "priority", "order")


def initial_of(queue: Queue) -> dict[str, Any]:
    """Return the form's initial values for a queue."""
    spec = queue.spec
    return {
        "generation": queue.metadata.generation,
        "weight": spec.weight or 1,
        "priority": spec.priority,
        "order": spec.dequeue_strategy or DequeueStrategy.TRAVERSE.value,
        "parent": "" if spec.parent == "root" else spec.parent,
        "reclaimable": spec.reclaimable is not False,
        **{
            field: "\n".join(f"{name}: {quantity}" for name, quantity in resources_of(queue, field).items())
            for field in SHARES
        },
    }


def resources_of(queue: Queue, field: str) -> dict[str, str]:
    """Return the resource list of a queue for a field of the form, with its quantities as they were written."""
    written = queue.spec.guarantee.resource if field == "guarantee" else getattr(queue.spec, field)
    return {name: str(quantity) for name, quantity in written.items()}


def _put(spec: Object, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        spec = spec.setdefault(key, {})
    spec[path[-1]] = value
