"""What the page of a job, or of all, says."""

import json

import lxml.html


def words(element):
    return " ".join("".join(element.itertext()).split())


def tree_of(answer):
    return lxml.html.document_fromstring(answer.content.decode())


def words_of(answer, part):
    """What an answer says in the element with an id."""
    return words(tree_of(answer).get_element_by_id(part))


class JobPage:
    def __init__(self, browser, name="demo", query="", address=""):
        answer = browser.get(address or f"/jobs/default/{name}/{query}")
        assert answer.status_code == 200
        self.html = answer.content.decode()
        self.tree = lxml.html.document_fromstring(self.html)

    @classmethod
    def of_list(cls, browser, query=""):
        return cls(browser, address=f"/jobs/{query}")

    def text(self, part):
        return words(self.tree.get_element_by_id(part))

    @property
    def drawn(self):
        return json.loads(self.tree.get_element_by_id("timeline").get("data-drawn"))

    @property
    def rows(self):
        return self.tree.findall(".//tbody[@id='table-rows']/tr")

    @property
    def names(self):
        return [row.find("th/a").text for row in self.rows]

    @property
    def pods(self):
        return {row.find("th/a").text: words(row.find("td[@data-label='Phase']")) for row in self.rows}

    @property
    def steps(self):
        return [words(step) for step in self.tree.findall(".//*[@id='job-steps']/li")]

    @property
    def runs(self):
        return [words(run) for run in self.tree.findall(".//*[@id='job-runs']//a")]

    def offered(self, name):
        """The values of a filter, but for all."""
        return [each.get("value") for each in self.tree.findall(f".//select[@name='{name}']/option")][1:]
