"""Forms of the design system: their widgets have its classes, hints and errors are tied to their fields."""

from __future__ import annotations

from typing import Any

from django import forms

from cluster.access.roles import EVERYWHERE, Role

CLASSES = {forms.Select: "select", forms.Textarea: "textarea", forms.CheckboxInput: "", forms.RadioSelect: ""}


class Form(forms.Form):
    """A form whose widgets have the classes of the design system."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dress()

    def dress(self) -> None:
        """Give the widgets of all fields their classes; a form that adds fields calls it again."""
        for field in self.fields.values():
            kind = next((css for widget, css in CLASSES.items() if isinstance(field.widget, widget)), "input")
            if kind:
                field.widget.attrs.setdefault("class", kind)
            if isinstance(field, forms.CharField):
                field.widget.attrs.setdefault("autocomplete", "off")
                field.widget.attrs.setdefault("spellcheck", "false")


ROLES = [(role.value, role.value) for role in Role]


class UserForm(Form):
    """A new account; without a password the first login is by a one-time link."""

    name = forms.CharField(max_length=150, label="Name", help_text="Letters, digits and @ . + - _")
    password = forms.CharField(
        required=False,
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Leave it empty to get a one-time link instead.",
    )
    role = forms.ChoiceField(choices=[("", "none yet"), *ROLES], required=False, label="Role")
    namespace = forms.CharField(
        max_length=63, initial=EVERYWHERE, required=False, label="In namespace", help_text="* means in all."
    )


class RoleForm(Form):
    """A role for a user, a group or a service account, in a namespace or everywhere."""

    kind = forms.ChoiceField(
        choices=[("user", "user"), ("group", "group"), ("account", "service account")], label="Give"
    )
    subject = forms.CharField(max_length=317, label="Name", help_text="A service account: NAMESPACE/NAME.")
    role = forms.ChoiceField(choices=ROLES, label="Role")
    namespace = forms.CharField(max_length=63, initial=EVERYWHERE, label="In namespace", help_text="* means in all.")


class NamespaceForm(Form):
    """A new namespace."""

    name = forms.CharField(max_length=63, label="Name", help_text="Lower-case letters, digits and “-”.")


class PasswordForm(Form):
    """A password for somebody else."""

    password = forms.CharField(
        label="New password", strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )
    revoke = forms.BooleanField(required=False, label="Also revoke API tokens")


class TokenForm(Form):
    """A token for the API."""

    name = forms.CharField(max_length=100, label="What it is for", help_text="Such as “laptop” or “nightly build”.")
    days = forms.ChoiceField(
        choices=[("1", "1 day"), ("30", "30 days"), ("365", "1 year")], initial="30", label="It works for"
    )


class MachineForm(Form):
    """A machine that is to become a node."""

    node = forms.CharField(
        max_length=253,
        required=False,
        label="Name as a node",
        help_text="Leave it empty for the machine's host name. Name a node that is gone to bring it back on a machine set up anew.",
    )
    hours = forms.ChoiceField(
        choices=[("1", "1 hour"), ("24", "1 day"), ("720", "30 days")], initial="24", label="The machine may join for"
    )
