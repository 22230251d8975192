"""Tables whose whole state is in the URL: `?q=&namespace=&queue=&phase=&owner=&sort=-created&page=2&per=50`.

A `Spec` has the columns, filters and orders of a list as data; `Spec.read`
turns a query into a `TableView`, in which every value is valid; a `Table` is a view
with its rows and counts, for `partials/_table.html` and for the socket.
An invalid value is not an error: it is left out, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe

from dashboard.live.topics import Parts, Watch, address
from dashboard.parts import paging, phases
from dashboard.parts.bulk import Bulk
from dashboard.parts.filters import Field, Filter, plain_text


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `sort` is the store's order, `kind` selects the style, `priority` "low" hides it on small screens."""

    title: str
    sort: str = ""
    kind: str = "text"
    priority: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """One link with a count above a table."""

    label: str
    count: int
    url: str
    chosen: bool
    icon: str = ""
    hue: str = ""


@dataclass(frozen=True, slots=True)
class TableView:
    """A valid reading of the query: the filters, the order and the page."""

    spec: Spec
    values: Mapping[str, str]
    sort: str
    page: int
    per: int
    notes: tuple[str, ...] = ()
    of: Mapping[str, str] = field(default_factory=dict)  # the parameters `Spec.of`, which clearing the filters leaves

    @property
    def q(self) -> str:
        return self.values.get("q", "")

    @property
    def filtered(self) -> bool:
        return bool(self.values)

    @property
    def is_newest_first(self) -> bool:
        """Whether new rows come first, and push down those that somebody reads."""
        return self.sort in ("-created", "-revision")

    @property
    def order(self) -> str:
        """The store's order of this view; rows that were created at the same moment do not move when they change."""
        return self.sort.replace("created", "made")

    def get(self, name: str) -> str:
        """The value of a filter, empty when it is not set."""
        return self.values.get(name, "")

    def params(self, **changes: str | int | None) -> dict[str, str]:
        """The query with changes applied; defaults are left out, and any change but of the page leads to page 1."""
        page = self.page if not changes or set(changes) == {"page"} else 1
        plain: dict[str, str | int | None] = {**self.of, **self.values}
        plain |= {"sort": self.sort, "per": self.per, "page": page, **changes}
        defaults = {"sort": self.spec.order, "per": paging.DEFAULT_SIZE, "page": 1}
        return {key: str(value) for key, value in plain.items() if value and value != defaults.get(key)}

    def url(self, **changes: str | int | None) -> str:
        """The address of this view with changes, relative to the page."""
        return "?" + urlencode(self.params(**changes))

    @property
    def clear(self) -> str:
        """The address of the same table without filters."""
        return "?" + urlencode(self.of)

    def filters_text(self, *, without: str = "") -> str:
        """Return the filters that are set, but for one, in words: `text “tf”, namespace “team-a”`."""
        filters = {each.name: each for each in self.spec.filters}
        texts = []
        for name, value in self.values.items():
            if value and name != without:
                each = filters.get(name)
                texts.append(f"{each.title.lower()} “{each.label(value)}”" if each else f"text “{value}”")
        return ", ".join(texts)

    def obeyed(self, *, without: str = "phase") -> str:
        """Return in a sentence which filters the counts obey."""
        text = self.filters_text(without=without)
        return f"Counts obey {text}" if text else "Counts cover everything you may see"


@dataclass(frozen=True, slots=True)
class Spec:
    """The columns, filters and words of a list; `name` is its topic's, `search` the hint in the text box.

    `of` names the parameters of the object that the rows belong to.
    """

    name: str
    columns: tuple[Column, ...]
    filters: tuple[Filter, ...] = ()
    order: str = "name"
    search: str = "Filter by name"
    noun: str = "row"
    plural: str = "rows"
    of: tuple[str, ...] = ()

    def read(self, params: QueryDict | Mapping[str, str]) -> TableView:
        """Read a query; invalid values are left out, each with a note."""
        notes: list[str] = []
        values = {"q": plain_text("q", params.get("q", ""), notes)}
        for each in self.filters:
            values[each.name] = each.read(params.get(each.name, ""), notes)
        per = _number(params.get("per", ""), paging.DEFAULT_SIZE, notes, "Rows per page")
        if per not in paging.SIZES:
            notes.append(f"Rows per page can be {', '.join(map(str, paging.SIZES))}; {paging.DEFAULT_SIZE} are shown.")
            per = paging.DEFAULT_SIZE
        return TableView(
            spec=self,
            values={name: value for name, value in values.items() if value},
            sort=self._sort(params.get("sort", ""), notes),
            page=_number(params.get("page", ""), 1, notes, "Page"),
            per=per,
            notes=tuple(notes),
            of={name: value for name in self.of if (value := params.get(name, ""))},
        )

    def _sort(self, value: str, notes: list[str]) -> str:
        if not value:
            return self.order
        if value.removeprefix("-") not in {column.sort for column in self.columns if column.sort}:
            notes.append(
                f"This list cannot be sorted by “{value[:40]}”; it is sorted by {self.order.removeprefix('-')}."
            )
            return self.order
        return value


def _number(value: str, default: int, notes: list[str], title: str) -> int:
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or not 0 < int(value[:9]) < 10**8:
        notes.append(f"{title} “{value[:40]}” is not a number; {default} is used.")
        return default
    return int(value[:9])


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's head: its title, and the link that sorts by it."""

    title: str
    kind: str
    priority: str
    url: str
    direction: str  # "ascending", "descending" or ""


@dataclass
class Table:
    """A view with its rows, for `partials/_table.html` and for a topic.

    * `rows` maps each row's element id to its HTML (`<tr id=…>`), in order.
    * `counts` is by phase (or by the filter `by`), obeying every filter but that; words of `apart` are not in the sum.
    * `choices` has the options of filters that have none of their own.
    * `fixed` are parameters of the topic that are in the page's path. A table that is not `live` has no topic.
    * `extra` are further parts of the page; `above` are those above the rows, which obey their filters.
    * `bulk` has the actions on many rows, each of which then has a checkbox; `bulk_fixed` are filters beside the view's.
    * `again` is when (epoch ms) the rows may differ although nothing that is watched has changed.
    """

    view: TableView
    rows: Mapping[str, str]
    page: paging.Page
    watches: Sequence[Watch] = ()
    counts: Mapping[str, int] | None = None
    phases: Sequence[str] = ()
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    revision: int = 0
    empty: Mapping[str, str] = field(default_factory=dict)
    by: str = "phase"
    fixed: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    above: Mapping[str, str] = field(default_factory=dict)
    live: bool = True
    bulk: Bulk | None = None
    bulk_fixed: Mapping[str, str] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    again: int | None = None

    @property
    def topic(self) -> str:
        """The topic's canonical spelling for `data-live`."""
        return address(self.view.spec.name, {**self.view.params(), **self.fixed})

    @cached_property
    def headings(self) -> list[Heading]:
        return [self._heading(column) for column in self.view.spec.columns]

    def _heading(self, column: Column) -> Heading:
        if not column.sort:
            return Heading(column.title, column.kind, column.priority, "", "")
        down = f"-{column.sort}"
        direction = {column.sort: "ascending", down: "descending"}.get(self.view.sort, "")
        # The first click sorts times and numbers from the highest, names from a to z; the second one reverses that.
        first, second = (down, column.sort) if column.kind in ("time", "number") else (column.sort, down)
        url = self.view.url(sort=second if self.view.sort == first else first)
        return Heading(column.title, column.kind, column.priority, url, direction)

    @property
    def chips(self) -> list[Chip]:
        """Every phase with its count; the first chip is for all of them."""
        counts = self.counts or {}
        chosen = self.view.get(self.by)
        every = sum(count for word, count in counts.items() if word not in self.apart)
        chips = [Chip("All", every, self.view.url(**{self.by: None}), not chosen)]
        words = [*self.phases, *sorted(set(counts) - set(self.phases) - {""})]
        for word in words:
            appearance = phases.appearance(word)
            url = self.view.url(**{self.by: word})
            chips.append(Chip(word, counts.get(word, 0), url, word == chosen, appearance.icon, appearance.hue))
        return chips

    @property
    def obeyed(self) -> str:
        return self.view.obeyed(without=self.by)

    @property
    def fields(self) -> list[Field]:
        """The filters that are always shown."""
        return [self._field(each) for each in self.view.spec.filters if not (each.hidden or each.more)]

    @property
    def more_fields(self) -> list[Field]:
        """The filters behind "More filters"."""
        return [self._field(each) for each in self.view.spec.filters if each.more]

    @property
    def more_set(self) -> int:
        """How many filters behind "More filters" are set."""
        return sum(bool(each.value) for each in self.more_fields)

    def _field(self, each: Filter) -> Field:
        chosen = self.view.get(each.name)
        is_choice = each.kind == "choice"
        return Field(each, chosen, each.options(chosen, self.choices.get(each.name, ())) if is_choice else ())

    @property
    def hidden_fields(self) -> list[tuple[str, str, str]]:
        """The hidden fields of the filter form: (name, value, default)."""
        spec, view = self.view.spec, self.view
        fields = [("sort", view.sort, spec.order), ("per", str(view.per), str(paging.DEFAULT_SIZE))]
        fields += [(name, value, "") for name, value in view.of.items()]
        return fields + [(each.name, view.get(each.name), "") for each in spec.filters if each.hidden]

    @property
    def filtered(self) -> bool:
        return self.view.filtered

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """The filters that are set, for the form of a bulk operation: (name, value)."""
        return [*self.view.values.items(), *self.bulk_fixed.items()]

    @property
    def earlier(self) -> str:
        return self.view.url(page=self.page.previous) if self.page.previous else ""

    @property
    def later(self) -> str:
        return self.view.url(page=self.page.next) if self.page.next else ""

    @property
    def sizes(self) -> list[tuple[int, str]]:
        return [(size, self.view.url(per=size)) for size in paging.SIZES]

    @property
    def extra_html(self) -> SafeString:
        return mark_safe("".join(self.extra.values()))  # noqa: S308  rendered templates

    @property
    def above_html(self) -> SafeString:
        return mark_safe("".join(self.above.values()))  # noqa: S308  rendered templates

    def parts(self) -> Parts:
        """The rows, and the elements around them, as the parts of a topic."""
        around = {
            f"table-{piece}": render_to_string(f"partials/_table_{piece}.html", {"table": self})
            for piece in ("chips", "empty", "pager", *(["total"] if self.bulk else []))
        }
        return Parts(
            parts={**self.rows, **around, **self.above, **self.extra},
            order=list(self.rows),
            watches=list(self.watches),
            again=self.again,
        )
